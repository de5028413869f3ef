package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that their deadlines use virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { close(l.closed); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// swallow reads a request's content, after a pause, and answers 200.
type swallow struct{ pause time.Duration }

func (s swallow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(s.pause) // virtual
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}

// session is for a Config whose connections need not be distinguished.
func session(t Transport) func() Session { return func() Session { return closer{t} } }

type closer struct{ Transport }

func (closer) Close() {}

func (swallow) DialTunnel(context.Context, string) (net.Conn, string, error) {
	return nil, "", errors.New("not here")
}

func TestSlowSenders(t *testing.T) {
	const post = "POST http://o.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 120000\r\n\r\n"
	for _, tt := range []struct {
		name   string
		head   string
		piece  int // bytes each second
		pause  time.Duration
		status string // "" = closed without an answer
		after  time.Duration
	}{
		{"R189 1 byte each second", post, 1, 0, "408", 30 * time.Second},
		{"R189 nothing", post, 0, 0, "408", 30 * time.Second},
		{"R189 900 bytes each second", post, 900, 0, "408", 30 * time.Second},
		{"R189 R64 2 KiB each second, for a minute", post, 2 << 10, 0, "200", 58 * time.Second},
		{"R189 an origin that does not read is not the client's fault", post, 4 << 10, time.Hour, "200", time.Hour + 29*time.Second},
		{"R189 R64 1 byte of the head each second", "GET ", 1, 0, "400", 10 * time.Second},
		{"R189 R64 no head", "", 0, 0, "", 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin := swallow{tt.pause}
				p := New(Config{Transport: origin, Session: session(origin), Log: slog.New(slog.DiscardHandler)})
				s := NewServer(p)
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				done := make(chan struct{})
				go func() { defer close(done); _ = s.Serve(l) }()
				near, far := net.Pipe()
				l.conns <- far
				begin := time.Now()
				stop, sent := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = io.WriteString(near, tt.head)
					for {
						_, err := io.WriteString(near, strings.Repeat("x", tt.piece))
						if err != nil {
							return
						}
						select {
						case <-time.After(time.Second):
						case <-stop:
							return
						}
					}
				}()
				resp, err := http.ReadResponse(bufio.NewReader(near), nil)
				took := time.Since(begin)
				switch {
				case tt.status == "" && err == nil, tt.status != "" && (err != nil || !strings.HasPrefix(resp.Status, tt.status)):
					t.Errorf("got %v, %v, want %q", resp, err, tt.status)
				case took.Round(2*time.Second) != tt.after.Round(2*time.Second):
					t.Errorf("after %v, want %v", took, tt.after)
				}
				close(stop)
				near.Close()
				<-sent
				_ = s.Close()
				<-done
			})
		})
	}
}

// hasty answers at once, while a goroutine keeps reading the content, as a transport's does.
type hasty struct{ swallow }

func (hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	go io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusRequestEntityTooLarge, Header: http.Header{}, Body: http.NoBody}, nil
}

func TestEarlyAnswer(t *testing.T) {
	for _, framing := range []string{"Content-Length: 1000", "Content-Length: 2000000", "Transfer-Encoding: chunked"} {
		for _, sends := range []int{0, 999, 999_999} {
			if sends > 1000 && framing == "Content-Length: 1000" {
				continue
			}
			t.Run(fmt.Sprintf("R67 %s, %d bytes after the answer", framing, sends), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := New(Config{Transport: hasty{}, Session: session(hasty{}), Log: slog.New(slog.DiscardHandler)})
					s := NewServer(p)
					l := &pipes{make(chan net.Conn), make(chan struct{})}
					done := make(chan struct{})
					go func() { defer close(done); _ = s.Serve(l) }()
					near, far := net.Pipe()
					l.conns <- far
					_, _ = io.WriteString(near, "POST http://o.test/ HTTP/1.1\r\nHost: x\r\n"+framing+"\r\n\r\n")
					answers := bufio.NewReader(near)
					begin := time.Now()
					resp, err := http.ReadResponse(answers, nil)
					if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || time.Since(begin) != 0 {
						t.Fatalf("%v, %v after %v", resp, err, time.Since(begin))
					}
					content := strings.Repeat("x", sends)
					if framing[0] == 'T' {
						content = strings.Repeat("1\r\nx\r\n", sends/6)
					}
					if _, err := io.WriteString(near, content); err != nil {
						t.Errorf("while the client sends: %v", err)
					}
					// The server waits for the same time again before it closes the connection with unread bytes.
					if _, err := io.Copy(io.Discard, answers); err != nil || time.Since(begin) > 2*lingerTime {
						t.Errorf("the end comes after %v, %v", time.Since(begin), err)
					}
					near.Close()
					_ = s.Close()
					<-done
				})
			})
		}
	}
}

func TestIdleClient(t *testing.T) {
	t.Run("R64 an idle connection is closed after 120 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := New(Config{Transport: swallow{}, Session: session(swallow{}), Log: slog.New(slog.DiscardHandler)})
			s := NewServer(p)
			l := &pipes{make(chan net.Conn), make(chan struct{})}
			done := make(chan struct{})
			go func() { defer close(done); _ = s.Serve(l) }()
			near, far := net.Pipe()
			l.conns <- far
			answers := bufio.NewReader(near)
			for _, pause := range []time.Duration{0, idleTime - time.Second} {
				time.Sleep(pause) // virtual
				_, _ = io.WriteString(near, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
				if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("after %v: %v, %v", pause, resp, err)
				}
			}
			begin := time.Now()
			if _, err := answers.ReadByte(); err != io.EOF || time.Since(begin) != idleTime {
				t.Errorf("%v after %v, want the end after %v", err, time.Since(begin), idleTime)
			}
			near.Close()
			_ = s.Close()
			<-done
		})
	})
}

// hinting sends an interim answer and, after a pause, another one.
type hinting struct {
	swallow
	ended chan<- error // why its request ended early
}

func (o hinting) RoundTrip(r *http.Request) (*http.Response, error) {
	hook := httptrace.ContextClientTrace(r.Context()).Got1xxResponse
	if err := hook(http.StatusEarlyHints, textproto.MIMEHeader{"Link": {"<a>"}}); err != nil {
		o.ended <- err
		return nil, err
	}
	select {
	case <-time.After(o.pause):
		return o.swallow.RoundTrip(r)
	case <-r.Context().Done():
		o.ended <- r.Context().Err()
		return nil, r.Context().Err()
	}
}

// TestInterimToSlow: a client that reads nothing, not even an interim answer, does not hold a connection forever.
func TestInterimToSlow(t *testing.T) {
	for _, reads := range []bool{false, true} {
		t.Run(fmt.Sprintf("R189 R64 the client reads: %v", reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				origin := hinting{swallow{time.Hour}, ended}
				s := NewServer(New(Config{Transport: origin, Session: session(origin), Log: slog.New(slog.DiscardHandler)}))
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				done := make(chan struct{})
				go func() { defer close(done); _ = s.Serve(l) }()
				near, far := net.Pipe()
				l.conns <- far
				began := time.Now()
				if _, err := io.WriteString(near, "POST http://o.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if reads {
					answers := bufio.NewReader(near)
					for _, want := range []int{http.StatusEarlyHints, http.StatusOK} {
						if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != want {
							t.Fatalf("%v, %v; want %d", resp, err, want)
						}
					}
				} else if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(began) != stallTime {
					t.Errorf("the request ends after %v with %v", time.Since(began), err)
				}
				near.Close()
				_ = s.Close()
				<-done
			})
		})
	}
}
