package relay

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// pair is a Nearest of two relays. The second one does not answer until it is allowed to.
type pair struct {
	*testing.T
	first, second *rig
	n             *Nearest
	may           chan struct{} // closed when the second one answers
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t, first: newRig(t, loopback), second: newRig(t, loopback), may: make(chan struct{})}
	for _, r := range []*rig{p.first, p.second} {
		r.client = p.first.client
		if err := Enrol(t.Context(), r.client, r.invite()); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.n, err = NewNearest(p.first.client, []string{p.second.address, p.first.address}, 64<<20, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	dial := link.DialFunc(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
		if addr == p.second.address {
			select {
			case <-p.may:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	})
	p.n.SetLinks(dial.Over(link.Link{Name: "wifi"}, link.Link{Name: "lte"}))
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { p.n.Run(ctx) })
	t.Cleanup(func() { cancel(); runs.Wait() })
	return p
}

// dial connects as soon as a relay does, and reports which one did.
func (p *pair) dial(addr string) (c net.Conn, relay string) {
	p.Helper()
	p.first.until("a relay connects", func() (ok bool) {
		relay = p.n.Status().Address
		var err error
		c, err = p.n.Dial(p.Context(), addr)
		return err == nil
	})
	p.Cleanup(func() { c.Close() })
	return c, relay
}

// TestNearestDrains: when the relay that answered first is about to stop, streams start at the other one, and its own continue.
func TestNearestDrains(t *testing.T) {
	p := newPair(t)
	addr := echoes(t)
	old, relay := p.dial(addr)
	if relay != p.first.address {
		t.Fatal("the one that does not answer is used")
	}
	p.first.echo(old, 1000)
	close(p.may)
	p.first.at.Drain = time.Hour
	p.first.stop()
	p.first.until("it drains", func() bool { return p.first.at.Status().Draining })
	c, relay := p.dial(addr)
	if relay != p.second.address {
		t.Error("new streams begin at", relay)
	}
	p.second.echo(c, 1000)
	p.first.echo(old, 1<<20)
	if s := p.n.Status(); s.Streams != 2 {
		t.Errorf("%+v", s)
	}
	if err := old.(*Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, old); err != nil {
		t.Error(err)
	}
	old.Close()
	<-p.first.over
	p.first.until("its client has ended", func() bool {
		p.n.mu.Lock()
		defer p.n.mu.Unlock()
		return len(p.n.running) == 1
	})
}

// TestNearestDies: a relay that is away is replaced by one that answers.
func TestNearestDies(t *testing.T) {
	p := newPair(t)
	addr := echoes(t)
	old, _ := p.dial(addr)
	p.first.echo(old, 1000)
	p.first.stop()
	<-p.first.over
	close(p.may)
	c, relay := p.dial(addr)
	if relay != p.second.address {
		t.Error("streams begin at", relay)
	}
	p.second.echo(c, 1000)
}

// TestNearestUnknown: each relay must have been paired.
func TestNearestUnknown(t *testing.T) {
	r := newRig(t)
	if err := Enrol(t.Context(), r.client, r.invite()); err != nil {
		t.Fatal(err)
	}
	for _, addresses := range [][]string{{r.address, "relay.example:443"}, {"relay.example:443", r.address}} {
		if _, err := NewNearest(r.client, addresses, 1<<20, slog.New(slog.DiscardHandler)); err == nil {
			t.Error(slices.Clone(addresses))
		}
	}
}
