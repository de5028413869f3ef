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

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/link"
	ot "github.com/tributary-http/tributary/internal/origin/origintest"
)

// TestWarm: a connection that a probe has made carries the requests of the next transfer over its link, as one that was dialed.
func TestWarm(t *testing.T) {
	warm := func(t *testing.T, p *pool, l link.Link, addr string) {
		t.Helper()
		nc, info, err := p.dial.Path(l).Dial(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		p.Warm(l, addr, nc, info)
	}
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
		if *dials != 2 || c.Info().Reused || c.Info().Remote != r.s.Addr(0) {
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
		r.next(c) // the origin has accepted this one, and so the one before
		r.s.CloseConns()
		c = r.open(0)
		if *dials != 3 {
			t.Errorf("%d connections: a dead one is used", *dials)
		}
		r.send(c, whole(r))
		r.next(c)
	})
}
