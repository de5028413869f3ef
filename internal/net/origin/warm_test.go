package origin_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// warm gives a pool a connection made by a probe.
func warm(t *testing.T, p *pool, l link.Link, addr string) {
	t.Helper()
	nc, info, err := p.dial.Path(l).Dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p.Warm(l, addr, nc, info)
}

// TestWarm: a connection made by a probe carries the requests of the next transfer over its link, like a dialed one.
func TestWarm(t *testing.T) {
	counted := func(t *testing.T) (r *rig, dials *int) {
		r, dials = newRig(t, ot.Object{Size: 5000}), new(int)
		dial := r.pool.dial
		r.pool.dial = func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
			*dials++
			return dial(ctx, l, network, addr)
		}
		return r, dials
	}
	t.Run("http", func(t *testing.T) {
		r, dials := counted(t)
		warm(t, r.pool, links[0], r.target().Addr)
		other := r.open(1)
		if *dials != 2 {
			t.Errorf("%d connections: it carries requests over another link", *dials)
		}
		other.Close()
		c := r.open(0)
		if *dials != 2 || !c.Info().Reused || c.Info().Remote != r.s.Addr(0) { // it may have been closed meanwhile, like a kept one
			t.Errorf("%d connections, %+v", *dials, c.Info())
		}
		r.send(c, whole(r))
		r.next(c)
		second := r.open(0)
		if *dials != 3 {
			t.Errorf("%d connections: two at a time need two", *dials)
		}
		second.Close()
		c.Release()
		if !r.open(0).Info().Reused {
			t.Error("it is not kept as others are")
		}
	})
	t.Run("https", func(t *testing.T) {
		p, target := secured(t, func(c *tls.Conn, _ net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		})
		warm(t, p, links[0], target.Addr)
		p.dial = func(context.Context, link.Link, string, string) (net.Conn, error) {
			return nil, errors.New("another connection")
		}
		c, err := p.Open(t.Context(), links[0], target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Info().Reused {
			t.Error("its handshake has shown that it is open")
		}
		if err := c.Send(engine.RangeRequest{Target: target}); err != nil {
			t.Fatal(err)
		}
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(response.Body); string(b) != "hello" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("it may have died", func(t *testing.T) {
		r, dials := counted(t)
		warm(t, r.pool, links[0], r.target().Addr)
		warm(t, r.pool, links[0], r.target().Addr)
		c := r.open(0)
		r.send(c, whole(r))
		r.next(c) // the origin has accepted this one, and thus the one before
		r.s.CloseConns()
		c = r.open(0)
		if *dials != 3 {
			t.Errorf("%d connections: a dead one is used", *dials)
		}
		r.send(c, whole(r))
		r.next(c)
	})
}

// TestWarmConnectionCloses: an origin may close a connection on which it got no request for a while. Nobody is blamed for it.
func TestWarmConnectionCloses(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		r := newRig(t, ot.Object{Size: 5000}, ot.UntilRequest(1, ot.Raw(""), ot.ClosesEarly()))
		warm(t, r.pool, links[0], r.target().Addr)
		c := r.open(0)
		r.send(c, whole(r))
		if _, err := c.Next(); err == nil || outcome(t, err) != fault.Stale {
			t.Errorf("got %v", err)
		}
		c.Close()
		c = r.open(0)
		r.send(c, whole(r))
		r.next(c)
	})
	t.Run("https", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if nc, err := l.Accept(); err == nil {
				_, _ = nc.Read(make([]byte, 1)) // of the handshake
				nc.Close()
			}
		}()
		p, target := secured(t, func(c *tls.Conn, _ net.Conn) {
			if err := c.Handshake(); err != nil {
				t.Error(err)
			}
		})
		closes, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		p.Warm(links[0], target.Addr, closes, link.Info{})
		c, err := p.Open(t.Context(), links[0], target)
		if err != nil {
			t.Fatal(err)
		}
		if c.Info().Reused {
			t.Error("a fresh connection is taken for a kept one")
		}
		c.Close()
		if _, err := closes.Write([]byte{0}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the other one is left open: %v", err)
		}
	})
}

// TestWarmH2: a connection made by a probe uses HTTP/2, like a dialed one.
func TestWarmH2(t *testing.T) {
	r := newH2(t, 1000, nil)
	warm(t, r.pool, links[0], r.target().Addr)
	c := r.open()
	r.send(c, r.ask(0, 100), r.ask(100, 200))
	r.next(c)
	r.next(c)
	if r.dials.Load() != 1 {
		t.Errorf("%d connections", r.dials.Load())
	}
}
