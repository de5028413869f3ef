package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// echoes is an origin that echoes what it receives.
func echoes(t *testing.T) string {
	return origin(t, func(c *net.TCPConn) {
		_, _ = io.Copy(c, c)
		_ = c.CloseWrite()
	})
}

func (r *rig) echo(c net.Conn, n int) {
	r.Helper()
	sent, got := bytes.Repeat([]byte("x"), n), make([]byte, n)
	go func() { _, _ = c.Write(sent) }()
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		r.Fatal(err)
	}
}

// TestDrain: a server that is about to stop refuses new streams and reports that; open ones continue, also over a new lane;
// then it stops.
func TestDrain(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	addr := echoes(t)
	c := r.dial(addr)
	defer c.Close()
	r.echo(c, 1000)
	r.at.Drain = time.Hour
	r.stop()
	r.until("it drains", func() bool { return r.at.Status().Draining })
	for range 2 { // first told, then remembered
		if _, err := r.out.Dial(t.Context(), addr); !refusedFor(err, lanes.CauseDraining) {
			t.Errorf("a new stream: %v", err)
		}
	}
	r.cut("wifi", false)
	r.echo(c, 1<<20)
	r.lanes(2)
	r.until("the server has both lanes", func() bool { s := r.at.Status(); return len(s.Clients) == 1 && s.Clients[0].Lanes == 2 })
	s := r.at.Status()
	if s.Clients[0].Flows != 1 || s.Clients[0].Refused["draining"] != 1 || s.Clients[0].Bytes != 2*(1000+1<<20) {
		t.Errorf("%+v", s)
	}
	if err := c.(*Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	c.Close()
	<-r.over
}

// TestDrainEnds: streams that last longer are told why they end.
func TestDrainEnds(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	addr := echoes(t)
	c := r.dial(addr)
	defer c.Close()
	r.echo(c, 1000)
	r.at.Drain = time.Millisecond
	r.stop()
	if _, err := c.Read(make([]byte, 1)); !refusedFor(err, lanes.CauseDraining) {
		t.Error(err)
	}
	<-r.over
	if _, err := r.out.Dial(t.Context(), addr); !errors.Is(err, ErrAway) && !refusedFor(err, lanes.CauseDraining) {
		t.Error(err)
	}
}

// TestReload: changed limits apply at SIGHUP, and streams continue.
func TestReload(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	addr := echoes(t)
	c := r.dial(addr)
	defer c.Close()
	r.echo(c, 1000)
	known, err := Clients(r.server)
	if err != nil {
		t.Fatal(err)
	}
	for k := range known {
		if _, _, err := Limit(r.server, string(k), func(l *Limits) { l.Flows = 1 }); err != nil {
			t.Fatal(err)
		}
		r.reload <- syscall.SIGHUP
		r.until("the limit holds", func() bool {
			a := r.at.account(k)
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.limits.Flows == 1
		})
	}
	r.echo(c, 1000)
	if _, err := r.out.Dial(t.Context(), addr); !refusedFor(err, lanes.CauseFlows) {
		t.Error(err)
	}
}
