package direct_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/link"
)

// pipes returns a pass-through client over connections on which an origin answers each request with answer. dials counts them.
func pipes(t *testing.T, answer string) (p *direct.PassThrough, dials *int) {
	dials = new(int)
	over := link.DialFunc(func(context.Context, link.Link, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		*dials++
		go func() {
			defer far.Close()
			for br := bufio.NewReader(far); ; {
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				if _, err := io.WriteString(far, answer); err != nil {
					return
				}
			}
		}()
		return near, nil
	}).Over(link.Link{Name: "w0"})
	p = direct.NewPassThrough(func() []link.Link { return over }, nil, time.Minute)
	t.Cleanup(p.Close)
	return p, dials
}

// fetched returns the content that a GET gets.
func fetched(t *testing.T, p *direct.PassThrough) (string, error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://origin.test/", nil)
	if err != nil {
		return "", err
	}
	resp, _, err := p.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// TestAnswerWithoutRequest: bytes after an answer are never taken for the answer to the next request, even if that request gets the
// connection before net/http checks for such bytes.
func TestAnswerWithoutRequest(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	const bad = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
	for name, answer := range map[string]string{"R48 a whole answer": ok + bad, "R48 part of one": ok + bad[:30], "nothing": ok} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, dials := pipes(t, answer)
				var once sync.Once
				type result struct {
					body string
					err  error
				}
				second := make(chan result, 1)
				p.Idle = func(string, string) { // net/http has made the connection available
					once.Do(func() {
						go func() {
							body, err := fetched(t, p)
							second <- result{body, err}
						}()
						synctest.Wait() // the second request has come as far as it can
					})
				}
				if got, err := fetched(t, p); got != "ok" || err != nil {
					t.Errorf("first: %q, %v", got, err)
				}
				if got := <-second; got.body != "ok" || got.err != nil {
					t.Errorf("second: %q, %v", got.body, got.err)
				}
				if want := 2; name != "nothing" && *dials != want {
					t.Errorf("%d connections, want %d", *dials, want)
				}
			})
		})
	}
}

// TestRepairedContent: the content of answers whose heads were repaired, and that their connections are not used again if its end is not
// certain.
func TestRepairedContent(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		content      string // "" = an error
		dials        int    // of two requests
	}{
		{"R235 chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok", 2},
		{"R235 no chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n", "", 2},
		{"R236 a bad line", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX Y: z\r\n\r\nok", "ok", 1},
		{"R236 a bad line that is vital", "HTTP/1.1 200 OK\r\nContent Length: 2\r\n\r\nok", "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // content that ends with a kept connection would wait forever
				p, dials := pipes(t, c.answer)
				for range 2 {
					got, err := fetched(t, p)
					if got != c.content || (err == nil) != (c.content != "") {
						t.Errorf("%q, %v", got, err)
					}
				}
				if *dials != c.dials {
					t.Errorf("%d connections, want %d", *dials, c.dials)
				}
			})
		})
	}
}
