package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// tunnelTo opens a tunnel; early is sent in the same segment as the request.
func (g *rig) tunnelTo(o *scripted, early string) *conn {
	g.t.Helper()
	c := g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: " + o.addr + "\r\n\r\n" + early)
	c.want("HTTP/1.1 200 Connection established\r\n\r\n") // R140: no fields
	return c
}

func echo(c *conn) {
	_, _ = io.Copy(c.TCPConn, c.br)
	_ = c.CloseWrite()
}

func TestTunnel(t *testing.T) {
	t.Run("R140 R142 early bytes", func(t *testing.T) {
		g := start(t)
		o := serve(t, echo)
		c := g.tunnelTo(o, "early ")
		c.want("early ")
		c.send("late")
		c.want("late")
	})
	t.Run("R140 HTTP/1.0", func(t *testing.T) {
		g := start(t)
		o := serve(t, echo)
		c := g.send("CONNECT " + o.addr + " HTTP/1.0\r\n\r\nx")
		c.wantHead("200")
		c.want("x")
	})
	t.Run("R141 refused", func(t *testing.T) {
		g := start(t)
		o := serve(t, echo)
		o.l.Close()
		g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: x\r\n\r\n").wantHead("502")
	})
	t.Run("R143 client ends, reply still comes", func(t *testing.T) {
		g := start(t)
		o := serve(t, echo)
		c := g.tunnelTo(o, "")
		c.send("question")
		_ = c.CloseWrite()
		if rest, err := c.rest(); rest != "question" || err != nil {
			t.Errorf("read %q, %v", rest, err)
		}
	})
	t.Run("R143 origin ends first with 1 MB pending", func(t *testing.T) {
		g := start(t)
		data := make([]byte, 1<<20)
		r := rand.NewChaCha8([32]byte{1})
		_, _ = r.Read(data)
		got := make(chan string, 1)
		o := serve(t, func(c *conn) {
			_, _ = c.Write(data)
			_ = c.CloseWrite()
			rest, _ := c.rest()
			got <- rest
		})
		c := g.tunnelTo(o, "")
		if rest, err := c.rest(); !bytes.Equal([]byte(rest), data) || err != nil {
			t.Errorf("read %d bytes, %v", len(rest), err)
		}
		c.send("thanks")
		_ = c.CloseWrite()
		if s := <-got; s != "thanks" {
			t.Errorf("origin read %q", s)
		}
	})
	t.Run("R143 reset of the client reaches the origin", func(t *testing.T) {
		g := start(t)
		end := make(chan error, 1)
		o := serve(t, func(c *conn) {
			c.send("x")
			_, err := c.rest()
			end <- err
		})
		c := g.tunnelTo(o, "")
		c.want("x")
		_ = c.SetLinger(0)
		c.Close()
		if err := <-end; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("origin's end: %v, want a reset", err)
		}
	})
	t.Run("R143 reset of the origin reaches the client", func(t *testing.T) {
		g := start(t)
		o := serve(t, func(c *conn) {
			_, _ = c.br.ReadByte()
			_ = c.SetLinger(0)
		})
		c := g.tunnelTo(o, "x")
		if _, err := c.rest(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client's end: %v, want a reset", err)
		}
	})
	t.Run("R145 link down", func(t *testing.T) {
		g := start(t)
		end := make(chan error, 1)
		o := serve(t, func(c *conn) {
			_, _ = c.br.ReadByte()
			c.send("y")
			_, err := c.rest()
			end <- err
		})
		c := g.tunnelTo(o, "x")
		c.want("y")
		g.proxy.CloseLink("other")
		if n := g.proxy.Tunnels(); n != 1 {
			t.Fatalf("%d tunnels, want 1", n)
		}
		g.proxy.CloseLink("lo")
		if _, err := c.rest(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client's end: %v, want a reset", err)
		}
		if err := <-end; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("origin's end: %v, want a reset", err)
		}
	})
	t.Run("shutdown waits, then resets", func(t *testing.T) {
		g := start(t)
		o := serve(t, echo)
		c := g.tunnelTo(o, "x")
		c.want("x")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.proxy.Shutdown(ctx) }()
		c.send("still alive")
		c.want("still alive")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v", err)
		}
		if _, err := c.rest(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client's end: %v, want a reset", err)
		}
		if n := g.proxy.Tunnels(); n != 0 {
			t.Errorf("%d tunnels left", n)
		}
		g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: x\r\n\r\n").wantHead("503")
	})
	t.Run("R65 client leaves during the dial", func(t *testing.T) {
		g := start(t)
		g.f.dialErr = context.Canceled
		c := g.send("CONNECT o:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		<-g.f.dialed
		c.Close()
	})
}

func TestUpgrade(t *testing.T) {
	const ask = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
	switching := func(protocol string) func(c *conn) {
		return func(c *conn) {
			head, _ := c.head()
			if fieldsOf(head, "Sec-WebSocket-Key") == nil || strings.Join(fieldsOf(head, "Connection"), ",") != "Upgrade" ||
				strings.Join(fieldsOf(head, "Upgrade"), ",") != "websocket" {
				c.send("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")
				return
			}
			c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol +
				"\r\nSec-WebSocket-Accept: a\r\n\r\nhello ")
			echo(c)
		}
	}
	t.Run("R69 R71 websocket", func(t *testing.T) {
		g := start(t)
		o := serve(t, switching("websocket"))
		c := g.send("GET " + o.url("/ws") + " HTTP/1.1\r\nHost: x\r\n" + ask + "frame")
		head := c.wantHead("101")
		if fieldsOf(head, "Sec-WebSocket-Accept") == nil || strings.Join(fieldsOf(head, "Upgrade"), ",") != "websocket" ||
			strings.Join(fieldsOf(head, "Connection"), ",") != "Upgrade" {
			t.Errorf("head %q", head)
		}
		c.want("hello frame")
		c.send("!")
		c.want("!")
		_ = c.CloseWrite()
		if rest, err := c.rest(); rest != "" || err != nil {
			t.Errorf("after the end %q, %v", rest, err)
		}
	})
	t.Run("R145 link down", func(t *testing.T) {
		g := start(t)
		o := serve(t, switching("websocket"))
		c := g.send("GET " + o.url("/ws") + " HTTP/1.1\r\nHost: x\r\n" + ask)
		c.wantHead("101")
		c.want("hello ")
		g.proxy.CloseLink("other")
		c.send("!")
		c.want("!")
		g.proxy.CloseLink("lo")
		if _, err := c.rest(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client's end: %v, want a reset", err)
		}
	})
	t.Run("R22 options of Connection together, in lines and twice", func(t *testing.T) {
		g := start(t)
		o := serve(t, switching("websocket"))
		c := g.send("GET " + o.url("/ws") + " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nConnection:, upgrade\r\n" + ask)
		c.wantHead("101")
		c.want("hello ")
	})
	t.Run("R69 another protocol", func(t *testing.T) {
		g := start(t)
		o := serve(t, switching("other"))
		g.send("GET " + o.url("/ws") + " HTTP/1.1\r\nHost: x\r\n" + ask).wantHead("502")
	})
	t.Run("R72 unsolicited", func(t *testing.T) {
		for _, way := range []string{"Accept: */*", passOn} {
			g := start(t)
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
				_, _ = c.rest()
			})
			g.get(o.url("/"), way).wantHead("502")
		}
	})
	t.Run("R69 refused by the origin", func(t *testing.T) {
		g := start(t)
		o, _ := answer(t, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno")
		c := g.send("GET " + o.url("/ws") + " HTTP/1.1\r\nHost: x\r\n" + ask)
		c.wantHead("426")
		c.want("no")
	})
}
