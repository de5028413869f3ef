package proxy

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// patient answers after a given time, unless the request ends earlier.
type patient struct {
	swallow
	takes time.Duration
}

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := p.swallow.RoundTrip(r); err != nil {
		return nil, err
	}
	select {
	case <-time.After(p.takes):
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}

// TestLongRequests: limits apply to slow content from the client, never to the duration of its answer.
func TestLongRequests(t *testing.T) {
	for _, request := range []string{
		"DELETE http://o.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD http://o.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST http://o.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST http://o.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"POST http://o.test/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		t.Run("R64 "+request[:5], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin := patient{takes: time.Hour}
				s := NewServer(New(Config{Transport: origin, Session: session(origin), Log: slog.New(slog.DiscardHandler)}))
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				done := make(chan struct{})
				go func() { defer close(done); _ = s.Serve(l) }()
				near, far := net.Pipe()
				l.conns <- far
				answers := bufio.NewReader(near)
				for range 2 { // the second one on the same connection
					if _, err := io.WriteString(near, request); err != nil {
						t.Fatal(err)
					}
					resp, err := http.ReadResponse(answers, &http.Request{Method: strings.Fields(request)[0]})
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Fatalf("%v, %v", resp, err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				near.Close()
				_ = s.Close()
				<-done
			})
		})
	}
}

// trickle answers with content of unknown length that ends an hour after its last byte.
type trickle struct{ swallow }

func (trickle) RoundTrip(*http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "hello")
		time.Sleep(time.Hour)
		w.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: r, ContentLength: -1}, nil
}

func TestLongAnswer(t *testing.T) {
	t.Run("R64 the end comes an hour after the last byte", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := NewServer(New(Config{Transport: trickle{}, Session: session(trickle{}), Log: slog.New(slog.DiscardHandler)}))
			l := &pipes{make(chan net.Conn), make(chan struct{})}
			done := make(chan struct{})
			go func() { defer close(done); _ = s.Serve(l) }()
			near, far := net.Pipe()
			l.conns <- far
			if _, err := io.WriteString(near, "POST http://o.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(near), nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); string(b) != "hello" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			near.Close()
			_ = s.Close()
			<-done
		})
	})
}
