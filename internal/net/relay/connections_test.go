package relay

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
	"github.com/tributary-http/tributary/internal/core/parallel"
	"github.com/tributary-http/tributary/internal/net/link"
)

// lossy returns Connections that saw losses slow down a lane of this link.
func lossy(t *testing.T, name string) *lanes.Connections {
	c := lanes.NewConnections(2)
	r := lanes.Reception{Lane: 1, RTT: 20 * time.Millisecond, Least: 20 * time.Millisecond}
	now := time.Unix(1000, 0)
	for i := range 100 {
		if r.Bytes += 1 << 20; i > 20 {
			r.Bytes -= 1 << 19
		}
		r.Holes++
		now = now.Add(parallel.SampleEvery)
		if c.Sample(now, name, []lanes.Reception{r}); c.Wanted(name) == 2 {
			return c
		}
	}
	t.Fatal("one lane is enough")
	return nil
}

// TestMoreLanes: a link gets as many lanes as pay off, and gets them all back after they end; surplus lanes end when no tunnel
// is open.
func TestMoreLanes(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	use := func(c *lanes.Connections) {
		r.out.mu.Lock()
		r.out.conns = c
		r.out.mu.Unlock()
		signal(r.out.wake)
	}
	c := r.dial(origin(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	defer c.Close()
	use(lossy(t, "lte"))
	r.lanes(3)
	for _, l := range r.out.Status().Lanes {
		if want := map[string]int{"wifi": 1, "lte": 2}[l.Link]; l.Connections != want {
			t.Errorf("%s: %d lanes, want %d", l.Link, l.Connections, want)
		}
	}
	r.cut("lte", true)
	r.lanes(1)
	r.cut("lte", false)
	r.lanes(3)
	buf := make([]byte, 5)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
		t.Errorf("%q, %v", buf, err)
	}
	use(lanes.NewConnections(2))
	if n := len(r.out.Status().Lanes); n != 2 {
		t.Errorf("%d links", n)
	}
	c.Close()
	r.until("the tunnel has ended", func() bool { return r.out.Status().Streams == 0 })
	signal(r.out.wake)
	r.lanes(2)

	use(lossy(t, "lte"))
	r.lanes(3)
	r.out.SetLinks([]link.Link{{Name: "wifi"}})
	r.until("the link is forgotten", func() bool {
		r.out.mu.Lock()
		defer r.out.mu.Unlock()
		return r.out.conns.Wanted("lte") == 1
	})
}

// TestLaneEndsAtOnce: a lane that ends before it is recorded does not count as one, otherwise its link would stay without a lane.
func TestLaneEndsAtOnce(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	c := r.out
	c.mu.Lock()
	v, p, known := c.current, c.at["wifi"], slices.Clone(c.at["wifi"].lanes)
	c.mu.Unlock()
	if _, err := c.made(v, p, 1000, 0, nil); err == nil {
		t.Error("it counts as made")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(p.lanes, known) || !p.retry.After(time.Now()) {
		t.Errorf("lanes %d, another attempt at %v", p.lanes, p.retry)
	}
}
