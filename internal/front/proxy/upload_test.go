package proxy_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestUpload(t *testing.T) {
	g := start(t)
	t.Run("R42 R66 streamed with its framing", func(t *testing.T) {
		seen := make(chan string)
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			for range 2 {
				b := make([]byte, len("3\r\nabc\r\n"))
				_, _ = io.ReadFull(c.br, b)
				seen <- string(b)
			}
			b := make([]byte, len("0\r\n\r\n"))
			_, _ = io.ReadFull(c.br, b)
			seen <- string(b)
			c.send(okAnswer)
		})
		c := g.send("PUT " + o.url("/") + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, chunk := range []string{"3\r\nabc\r\n", "3\r\ndef\r\n", "0\r\n\r\n"} {
			c.send(chunk)
			if got := <-seen; got != chunk { // the origin has it before the client sends more
				t.Errorf("origin saw %q, want %q", got, chunk)
			}
		}
		c.wantHead("200")
	})
	t.Run("R42 GET with content", func(t *testing.T) {
		got := make(chan string, 1)
		o := serve(t, func(c *conn) {
			head, _ := c.head()
			b := make([]byte, 5)
			_, _ = io.ReadFull(c.br, b)
			got <- head + string(b)
			c.send(okAnswer)
		})
		c := g.get(o.url("/"), "Content-Length: 5")
		c.send("hello")
		c.wantHead("200")
		if s := <-got; !slices.Equal(fieldsOf(s, "Content-Length"), []string{"5"}) || !strings.HasSuffix(s, "hello") {
			t.Errorf("origin saw %q", s)
		}
	})
	t.Run("R57 R67 early answer", func(t *testing.T) {
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			c.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			_, _ = c.rest()
		})
		for _, framing := range []string{"Content-Length: 10000000", "Content-Length: 1000", "Transfer-Encoding: chunked"} {
			c := g.send("POST " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n\r\n")
			if strings.HasPrefix(framing, "T") {
				c.send("5\r\nGET /\r\n")
			}
			if cn := fieldsOf(c.wantHead("413"), "Connection"); !slices.Equal(cn, []string{"close"}) {
				t.Errorf("Connection %q", cn)
			}
			c.want("no")
			if rest := c.ended(); rest != "" {
				t.Errorf("after the answer came %q", rest)
			}
		}
	})
	t.Run("R40 content breaks off", func(t *testing.T) {
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			_, _ = c.rest()
		})
		c := g.send("POST " + o.url("/") + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
		c.wantHead("400")
	})
}

func TestInterim(t *testing.T) {
	g := start(t)
	const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n"
	t.Run("R53 R19 two 103 then 200", func(t *testing.T) {
		o, _ := answer(t, hints+"HTTP/1.1 103 Early Hints\r\nX-B: 1\r\n\r\n"+okAnswer)
		c := g.get(o.url("/"), passOn)
		first, second, final := c.wantHead("103"), c.wantHead("103"), c.wantHead("200")
		if first != "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" {
			t.Errorf("first %q", first)
		}
		if second != "HTTP/1.1 103 Early Hints\r\nX-B: 1\r\n\r\n" {
			t.Errorf("second %q", second)
		}
		if fieldsOf(final, "Link") != nil || fieldsOf(final, "X-B") != nil {
			t.Errorf("fields leaked into %q", final)
		}
	})
	t.Run("R54 none for HTTP/1.0", func(t *testing.T) {
		o, _ := answer(t, hints+okAnswer)
		g.send("GET " + o.url("/") + " HTTP/1.0\r\n" + passOn + "\r\n\r\n").wantHead("200")
	})
	t.Run("R36 endless", func(t *testing.T) {
		o, _ := answer(t, strings.Repeat(hints, 40)+okAnswer)
		c := g.get(o.url("/"), passOn)
		for range 32 {
			c.wantHead("103")
		}
		c.wantHead("502")
	})

	post := func(o *scripted, version string) *conn {
		return g.send("POST " + o.url("/") + " HTTP/" + version + "\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	}
	t.Run("R56 the 100 is the origin's", func(t *testing.T) {
		heads, proceed := make(chan string, 1), make(chan struct{})
		o := serve(t, func(c *conn) {
			head, _ := c.head()
			heads <- head
			<-proceed
			c.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
			b := make([]byte, 5)
			_, _ = io.ReadFull(c.br, b)
			c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%s", b))
		})
		c := post(o, "1.1")
		if e := fieldsOf(<-heads, "Expect"); !slices.Equal(e, []string{"100-continue"}) {
			t.Errorf("Expect %q", e)
		}
		close(proceed)
		c.wantHead("103") // nothing arrived before the origin's own
		c.want("HTTP/1.1 100 Continue\r\n\r\n")
		c.send("hello")
		c.wantHead("200") // and no second 100
		c.want("hello")
	})
	t.Run("R56 R57 refused at once", func(t *testing.T) {
		body := make(chan string, 1)
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			c.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
			rest, _ := c.rest()
			body <- rest
		})
		c := post(o, "1.1")
		if cn := fieldsOf(c.wantHead("401"), "Connection"); !slices.Equal(cn, []string{"close"}) {
			t.Errorf("Connection %q", cn)
		}
		c.send("hello")
		if rest := c.ended(); rest != "" {
			t.Errorf("after the answer came %q", rest)
		}
		if s := <-body; s != "" {
			t.Errorf("origin got content %q", s)
		}
	})
	t.Run("R58 Expect from HTTP/1.0", func(t *testing.T) {
		heads := make(chan string, 1)
		o := serve(t, func(c *conn) {
			head, _ := c.head()
			heads <- head
			c.send(okAnswer)
		})
		c := post(o, "1.0")
		c.send("hello")
		c.wantHead("200")
		if e := fieldsOf(<-heads, "Expect"); e != nil {
			t.Errorf("Expect %q", e)
		}
	})
	t.Run("R56 origin that ignores Expect", func(t *testing.T) {
		g := start(t)
		g.f.transport.ExpectContinueTimeout = 1 // at once
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			b := make([]byte, 5)
			_, _ = io.ReadFull(c.br, b)
			c.send("HTTP/1.1 100 Continue\r\n\r\n" + okAnswer) // late
		})
		c := g.send("POST " + o.url("/") + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		c.wantHead("100")
		c.send("hello")
		c.wantHead("200")
	})
}
