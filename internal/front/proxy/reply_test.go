package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestFraming(t *testing.T) {
	g := start(t)
	for _, way := range []string{"Accept: */*", passOn} {
		t.Run("R66 streamed and flushed "+way, func(t *testing.T) {
			next := make(chan string)
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for s := range next {
					c.send(fmt.Sprintf("%x\r\n%s\r\n", len(s), s))
				}
				c.send("0\r\n\r\n")
			})
			c := g.get(o.url("/"), way)
			head := c.wantHead("200") // before the origin sent any content
			if te := fieldsOf(head, "Transfer-Encoding"); !slices.Equal(te, []string{"chunked"}) {
				t.Errorf("Transfer-Encoding %q", te)
			}
			for _, s := range []string{"a", "bcd"} {
				next <- s
				c.want(fmt.Sprintf("%x\r\n%s\r\n", len(s), s))
			}
			close(next)
			c.want("0\r\n\r\n")
		})
		t.Run("R66 known length, slow origin "+way, func(t *testing.T) {
			next := make(chan string)
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
				for s := range next {
					c.send(s)
				}
			})
			c := g.get(o.url("/"), way)
			c.wantHead("200")
			next <- "a"
			c.want("a")
			next <- "b"
			c.want("b")
			close(next)
		})
	}
	t.Run("R14 R66 close-delimited origin becomes chunked", func(t *testing.T) {
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			c.send("HTTP/1.0 200 OK\r\n\r\nabc")
		})
		c := g.get(o.url("/"), passOn)
		c.wantHead("200")
		c.want("3\r\nabc\r\n0\r\n\r\n")
	})
	t.Run("R59 HTTP/1.0 client, unknown length", func(t *testing.T) {
		o, heads := answer(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
		c := g.send("GET " + o.url("/") + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		head := c.wantHead("200")
		if cn := fieldsOf(head, "Connection"); !slices.Equal(cn, []string{"close"}) {
			t.Errorf("Connection %q", cn)
		}
		if te := fieldsOf(head, "Transfer-Encoding"); te != nil {
			t.Errorf("Transfer-Encoding %q", te)
		}
		if rest, err := c.rest(); rest != "abc" || err != nil {
			t.Errorf("body %q, %v", rest, err)
		}
		if h := <-heads; !strings.HasPrefix(h, "GET / HTTP/1.1\r\n") {
			t.Errorf("R14: origin saw %q", h)
		}
	})
	t.Run("R59 HTTP/1.0 client, known length", func(t *testing.T) {
		o, _ := answer(t, okAnswer)
		c := g.send("GET " + o.url("/") + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		if cn := fieldsOf(c.wantHead("200"), "Connection"); !slices.Equal(cn, []string{"close"}) {
			t.Errorf("Connection %q", cn)
		}
		if rest, err := c.rest(); rest != "ok" || err != nil {
			t.Errorf("body %q, %v", rest, err)
		}
	})
	t.Run("R38 Transfer-Encoding in HTTP/1.0", func(t *testing.T) {
		o, _ := answer(t, okAnswer)
		c := g.send("POST " + o.url("/") + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n" +
			"0\r\n\r\nGET " + o.url("/second") + " HTTP/1.0\r\n\r\n")
		c.wantHead("200")
		if rest := c.ended(); statusLine.MatchString(rest) {
			t.Errorf("second request was answered: %q", rest)
		}
	})
	for _, tt := range []struct{ name, method, raw string }{
		{"R46 HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
		{"R46 HEAD without length", "HEAD", "HTTP/1.1 200 OK\r\n\r\n"},
		{"R46 HEAD chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"R46 204", "GET", "HTTP/1.1 204 No Content\r\n\r\n"},
		{"R46 204 with length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"},
		{"R46 304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n"},
		{"R46 empty", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, _ := answer(t, tt.raw)
			c := g.dial()
			for range 2 { // a keep-alive client stays in sync
				c.send(tt.method + " " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n")
				head := c.wantHead(strings.Fields(tt.raw)[1])
				if tt.name == "R46 HEAD" && !slices.Equal(fieldsOf(head, "Content-Length"), []string{"5"}) {
					t.Errorf("R47: head %q", head)
				}
				if te := fieldsOf(head, "Transfer-Encoding"); te != nil {
					t.Errorf("Transfer-Encoding %q", te)
				}
			}
		})
	}
	t.Run("R60 pipelined", func(t *testing.T) {
		o, _ := answer(t, okAnswer)
		get := "GET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n"
		c := g.send(get + get + "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n" + get)
		for range 2 {
			c.wantHead("200")
			c.want("ok")
		}
		c.wantHead("400")
		if rest := c.ended(); statusLine.MatchString(rest) {
			t.Error("a request after the bad one was answered")
		}
	})
	t.Run("R35 407 of an origin", func(t *testing.T) {
		for _, way := range []string{"Accept: */*", passOn} {
			o, _ := answer(t, "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
			if pa := fieldsOf(g.get(o.url("/"), way).wantHead("502"), "Proxy-Authenticate"); pa != nil {
				t.Errorf("Proxy-Authenticate %q", pa)
			}
		}
	})
	t.Run("R13 status codes", func(t *testing.T) {
		for _, tt := range []struct{ code, want string }{{"799", "799"}, {"099", "502"}, {"000", "502"}} {
			for _, way := range []string{"Accept: */*", passOn} {
				o, _ := answer(t, "HTTP/1.1 "+tt.code+" X\r\nContent-Length: 0\r\n\r\n")
				g.get(o.url("/"), way).wantHead(tt.want)
			}
		}
	})
}

func TestTrailers(t *testing.T) {
	g := start(t)
	o, _ := answer(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nX-Sum: head\r\n"+
		"Connection: x-hop\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Late: 2\r\nX-Hop: 3\r\nKeep-Alive: 4\r\nSet-Cookie: 5\r\n\r\n")
	t.Run("R34 wanted", func(t *testing.T) {
		c := g.get(o.url("/"), "TE: trailers")
		if tr := fieldsOf(c.wantHead("200"), "Trailer"); !slices.Equal(tr, []string{"X-Sum"}) {
			t.Errorf("Trailer %q", tr)
		}
		c.want("2\r\nok\r\n0\r\n")
		rest, _ := c.rest()
		for _, w := range []string{"X-Sum: 1\r\n", "X-Late: 2\r\n"} {
			if !strings.Contains(rest, w) {
				t.Errorf("no %q in %q", w, rest)
			}
		}
		if strings.Count(rest, "\r\n") != 3 {
			t.Errorf("trailer section %q has more than two lines", rest)
		}
	})
	t.Run("R34 not wanted", func(t *testing.T) {
		c := g.get(o.url("/"), "Upgrade: x") // passed through
		if tr := fieldsOf(c.wantHead("200"), "Trailer"); tr != nil {
			t.Errorf("Trailer %q", tr)
		}
		c.want("2\r\nok\r\n0\r\n\r\n")
	})
	t.Run("R34 HTTP/1.0 client", func(t *testing.T) {
		c := g.send("GET " + o.url("/") + " HTTP/1.0\r\nTE: trailers\r\n\r\n")
		c.wantHead("200")
		if rest, _ := c.rest(); rest != "ok" {
			t.Errorf("body %q", rest)
		}
	})
	t.Run("R34 of a request", func(t *testing.T) {
		got := make(chan string, 1)
		o := serve(t, func(c *conn) {
			head, _ := c.head()
			var body strings.Builder
			for !strings.HasSuffix(body.String(), "\r\n\r\n") {
				b, err := c.br.ReadByte()
				if err != nil {
					break
				}
				body.WriteByte(b)
			}
			got <- head + body.String()
			c.send(okAnswer)
		})
		c := g.send("POST " + o.url("/") + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Hop\r\n" +
			"Connection: x-hop\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Hop: 2\r\n\r\n")
		c.wantHead("200")
		if s := <-got; !strings.HasSuffix(s, "2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n") {
			t.Errorf("origin saw %q", s)
		}
	})
}

func TestBrokenAnswers(t *testing.T) {
	g := start(t)
	for _, way := range []string{"Accept: */*", passOn} {
		for _, tt := range []struct{ name, raw, body string }{
			{"R49 short of its length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "abc"},
			{"R49 no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "3\r\nabc\r\n"},
			{"R43 bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0x2\r\nno\r\n", "3\r\nabc\r\n"},
		} {
			t.Run(tt.name+" "+way, func(t *testing.T) {
				o := serve(t, func(c *conn) {
					_, _ = c.head()
					c.send(tt.raw)
				})
				c := g.get(o.url("/"), way)
				c.wantHead("200")
				if rest, _ := c.rest(); rest != tt.body {
					t.Errorf("body %q, want %q and the end", rest, tt.body)
				}
			})
		}
		t.Run("R49 close-delimited is reset "+way, func(t *testing.T) {
			broken := make(chan struct{})
			cut := sync.OnceFunc(func() { close(broken) })
			defer cut()
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
				<-broken
			})
			c := g.send("GET " + o.url("/") + " HTTP/1.0\r\n" + way + "\r\n\r\n")
			c.wantHead("200")
			c.want("abc")
			cut()
			if _, err := c.rest(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("end of the connection: %v, want a reset", err)
			}
		})
	}
	t.Run("R65 client gone", func(t *testing.T) {
		for _, way := range []string{"Accept: */*", passOn} {
			gone := make(chan error, 1)
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				c.send("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n")
				_, err := c.rest() // ends when the proxy gives up
				gone <- err
			})
			c := g.get(o.url("/"), way)
			c.wantHead("200")
			c.Close()
			if err := <-gone; err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("origin: %v", err)
			}
		}
	})
	t.Run("R65 client gone before the answer", func(t *testing.T) {
		gone := make(chan error, 1)
		asked := make(chan struct{})
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			close(asked)
			_, err := c.rest()
			gone <- err
		})
		c := g.get(o.url("/"))
		<-asked
		c.Close()
		if err := <-gone; err != nil && !errors.Is(err, syscall.ECONNRESET) && err != io.EOF {
			t.Errorf("origin: %v", err)
		}
	})
}
