package origin_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestNoSlot: if a host has reached its limit of connections over a link, the next link is tried at once. If none is left,
// pass-through and tunnels wait for a while.
func TestNoSlot(t *testing.T) {
	const waitForLink = time.Minute
	errRefused := errors.New("refused")
	type world struct {
		mu     sync.Mutex
		full   map[string]chan struct{} // by link
		failed map[string]bool
	}
	run := func(name string, do func(t *testing.T, w *world, tunnel func(ctx context.Context) (string, time.Duration, error))) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{full: map[string]chan struct{}{}, failed: map[string]bool{}}
				over := link.DialFunc(func(_ context.Context, l link.Link, _, _ string) (net.Conn, error) {
					w.mu.Lock()
					defer w.mu.Unlock()
					switch freed := w.full[l.Name]; {
					case freed != nil:
						return nil, &link.NoSlotError{Link: l.Name, Host: "o.test", Most: 1, Freed: freed}
					case w.failed[l.Name]:
						return nil, errRefused
					}
					near, far := net.Pipe()
					far.Close()
					return near, nil
				}).Over(link.Link{Name: "wifi"}, link.Link{Name: "eth"})
				p := direct.NewPassThrough(func() []link.Link { return over }, nil, waitForLink)
				defer p.Close()
				do(t, w, func(ctx context.Context) (string, time.Duration, error) {
					began := time.Now()
					d, err := p.DialTunnel(ctx, "o.test:443")
					nc, l := d.Conn, d.Link
					if err == nil {
						nc.Close()
					}
					return l.Name, time.Since(began), err
				})
			})
		})
	}
	type tunnel = func(ctx context.Context) (string, time.Duration, error)
	run("the next link at once", func(t *testing.T, w *world, dial tunnel) {
		w.full["wifi"] = make(chan struct{})
		if name, took, err := dial(t.Context()); name != "eth" || took != 0 || err != nil {
			t.Errorf("%s after %v, %v", name, took, err)
		}
		delete(w.full, "wifi")
		if name, _, err := dial(t.Context()); name != "wifi" || err != nil {
			t.Errorf("%s, %v: a link that is full was not overtaken", name, err)
		}
	})
	run("a slot becomes free", func(t *testing.T, w *world, dial tunnel) {
		freed := make(chan struct{})
		w.full["wifi"], w.full["eth"] = make(chan struct{}), freed
		time.AfterFunc(3*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.full, "eth")
			close(freed)
		})
		if name, took, err := dial(t.Context()); name != "eth" || took != 3*time.Second || err != nil {
			t.Errorf("%s after %v, %v", name, took, err)
		}
	})
	run("another one is quicker", func(t *testing.T, w *world, dial tunnel) {
		freed := make(chan struct{})
		w.full["wifi"], w.failed["eth"] = freed, true
		time.AfterFunc(3*time.Second, func() { // the quicker one gets it
			w.mu.Lock()
			defer w.mu.Unlock()
			w.full["wifi"] = make(chan struct{})
			close(freed)
		})
		if _, took, err := dial(t.Context()); took != waitForLink || outcome(t, err) != fault.NoSlot {
			t.Errorf("after %v, %v", took, err)
		}
	})
	run("the client goes", func(t *testing.T, w *world, dial tunnel) {
		w.full["wifi"], w.full["eth"] = make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, took, err := dial(ctx); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v, %v", took, err)
		}
	})
}
