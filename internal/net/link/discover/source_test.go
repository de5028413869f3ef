package discover

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

func ips(ss ...string) (as []netip.Addr) {
	for _, s := range ss {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

func lnk(name string, index int, addrs ...string) link.Link {
	return link.Link{Name: name, Index: index, Addrs: ips(addrs...)}
}

func TestDiffAndLosses(t *testing.T) {
	a, b := lnk("a", 1, "10.0.0.1", "2001:db8::1"), lnk("b", 2, "10.0.0.2")
	less := lnk("a", 1, "10.0.0.1")
	more := lnk("a", 1, "10.0.0.1", "2001:db8::1", "10.0.0.9")
	other := lnk("a", 9, "10.0.0.1")
	tests := []struct {
		name                    string
		before, now             []link.Link
		added, removed, changed []link.Link
		left                    []link.Link
	}{
		{"nothing", []link.Link{a, b}, []link.Link{a, b}, nil, nil, nil, []link.Link{a, b}},
		{"first", nil, []link.Link{a}, []link.Link{a}, nil, nil, nil},
		{"gone", []link.Link{a, b}, []link.Link{b}, nil, []link.Link{a}, nil, []link.Link{b}},
		{"new", []link.Link{b}, []link.Link{a, b}, []link.Link{a}, nil, nil, []link.Link{b}},
		{"address gone", []link.Link{a}, []link.Link{less}, nil, nil, []link.Link{less}, []link.Link{less}},
		{"address new", []link.Link{a}, []link.Link{more}, nil, nil, []link.Link{more}, []link.Link{a}},
		{"replaced by another interface", []link.Link{a}, []link.Link{other}, []link.Link{other}, []link.Link{a}, nil, nil},
		{"renumbered", []link.Link{b}, []link.Link{lnk("b", 2, "10.0.0.3")}, nil, nil, []link.Link{lnk("b", 2, "10.0.0.3")}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Diff(tt.before, tt.now)
			if !link.Equal(c.Added, tt.added) || !link.Equal(c.Removed, tt.removed) || !link.Equal(c.Changed, tt.changed) {
				t.Errorf("diff %+v", c)
			}
			if got := losses(tt.before, tt.now); !link.Equal(got, tt.left) {
				t.Errorf("left %v, want %v", got, tt.left)
			}
		})
	}
	if len(a.Addrs) != 2 || a.Addrs[1] != netip.MustParseAddr("2001:db8::1") {
		t.Error("losses changed its argument")
	}
}

func TestStatic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := lnk("a", 1, "10.0.0.1"), lnk("b", 2, "10.0.0.2")
		s := NewStatic(a)
		one, _ := s.Watch(ctx)
		two, _ := s.Watch(ctx)
		for _, ch := range []<-chan []link.Link{one, two} {
			if got := <-ch; !link.Equal(got, []link.Link{a}) {
				t.Errorf("at once: %v", got)
			}
		}
		s.Set(a) // no difference
		synctest.Wait()
		select {
		case got := <-one:
			t.Errorf("sent again: %v", got)
		default:
		}
		s.Set(b)
		s.Set(a, b)
		synctest.Wait()
		if got := <-one; !link.Equal(got, []link.Link{a, b}) {
			t.Errorf("a slow receiver gets the last state: %v", got)
		}
		<-two
		s.Set()
		if got := <-two; len(got) != 0 {
			t.Errorf("no links: %v", got)
		}
		cancel()
		for range one {
		}
		for range two {
		}
	})
	var empty Static
	ctx, cancel := context.WithCancel(t.Context())
	ch, _ := empty.Watch(ctx)
	if got, ok := <-ch; !ok || len(got) != 0 {
		t.Errorf("the empty list is sent too: %v %v", got, ok)
	}
	cancel()
	for range ch {
	}
}

// kernelFake holds the links that look reads, and the times of reads.
type kernelFake struct {
	mu    sync.Mutex
	links []link.Link
	err   error
	looks int
}

func (k *kernelFake) look() ([]link.Link, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looks++
	return slices.Clone(k.links), k.err
}

func (k *kernelFake) set(err error, links ...link.Link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.links, k.err = links, err
}

func (k *kernelFake) looked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.looks
}

// inWatch runs f against a watch in virtual time.
func inWatch(t *testing.T, first []link.Link, f func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, h, out := &kernelFake{links: first}, newHints(), make(chan []link.Link)
		done := make(chan struct{})
		go func() {
			watch(ctx, h, first, k.look, out)
			close(done)
		}()
		if got := <-out; !link.Equal(got, first) {
			t.Errorf("first %v", got)
		}
		f(k, h, func() ([]link.Link, time.Duration) {
			start := time.Now()
			select {
			case ls := <-out:
				return ls, time.Since(start)
			case <-time.After(time.Minute):
				return nil, time.Minute
			}
		})
		cancel()
		<-done
	})
}

func TestWatch(t *testing.T) {
	a, b := lnk("a", 1, "10.0.0.1"), lnk("b", 2, "10.0.0.2")
	want := func(t *testing.T, ls []link.Link, took time.Duration, wantLinks []link.Link, wantTook time.Duration) {
		t.Helper()
		if !link.Equal(ls, wantLinks) || took != wantTook {
			t.Errorf("got %v after %v, want %v after %v", ls, took, wantLinks, wantTook)
		}
	}
	t.Run("a loss at once", func(t *testing.T) {
		inWatch(t, []link.Link{a, b}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil, b)
			give(h.lost)
			ls, took := next()
			want(t, ls, took, []link.Link{b}, 0)
		})
	})
	t.Run("a gain when it has settled", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil, a, b)
			give(h.gained)
			ls, took := next()
			want(t, ls, took, []link.Link{a, b}, settle)
		})
	})
	t.Run("both in one look: the loss is not kept back, the gain is", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil, b)
			give(h.lost)
			ls, took := next()
			want(t, ls, took, []link.Link{}, 0)
			ls, took = next()
			want(t, ls, took, []link.Link{b}, settle)
		})
	})
	t.Run("a flap is a loss and a return", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil)
			give(h.lost)
			ls, took := next()
			want(t, ls, took, nil, 0)
			k.set(nil, a)
			give(h.gained)
			ls, took = next()
			want(t, ls, took, []link.Link{a}, rejoin)
		})
	})
	t.Run("a link that is back as it was need not settle", func(t *testing.T) {
		inWatch(t, []link.Link{a, b}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			for range 3 {
				k.set(nil, a)
				give(h.lost)
				ls, took := next()
				want(t, ls, took, []link.Link{a}, 0)
				time.Sleep(600 * time.Millisecond)
				give(h.lost) // up again, without an address
				time.Sleep(time.Millisecond)
				k.set(nil, a, b)
				give(h.gained)
				ls, took = next()
				want(t, ls, took, []link.Link{a, b}, rejoin-time.Millisecond)
			}
		})
	})
	t.Run("after a minute it must", func(t *testing.T) {
		inWatch(t, []link.Link{a, b}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil, a)
			give(h.lost)
			next()
			time.Sleep(remembered + settle)
			k.set(nil, a, b)
			give(h.gained)
			ls, took := next()
			want(t, ls, took, []link.Link{a, b}, settle)
		})
	})
	t.Run("and so must one that has changed, and what is new", func(t *testing.T) {
		inWatch(t, []link.Link{a, b}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil)
			give(h.lost)
			next()
			time.Sleep(time.Second)
			moved, c := b, lnk("c", 3, "10.0.0.3")
			moved.Addrs = ips("10.0.0.7")
			k.set(nil, a, moved, c)
			give(h.gained)
			ls, took := next()
			want(t, ls, took, []link.Link{a}, rejoin)
			ls, took = next()
			want(t, ls, took, []link.Link{a, moved, c}, settle-rejoin)
		})
	})
	t.Run("addresses that return", func(t *testing.T) {
		inWatch(t, []link.Link{lnk("a", 1, "10.0.0.1", "10.0.0.2")}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil, a)
			give(h.lost)
			next()
			k.set(nil)
			give(h.lost)
			next()
			time.Sleep(time.Second)
			k.set(nil, lnk("a", 1, "10.0.0.1", "10.0.0.2"))
			give(h.gained)
			ls, took := next()
			want(t, ls, took, []link.Link{lnk("a", 1, "10.0.0.1", "10.0.0.2")}, rejoin)
		})
	})
	t.Run("while one is missed, a storm is looked at a hundred times a second", func(t *testing.T) {
		inWatch(t, []link.Link{a, b}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(nil, a)
			give(h.lost)
			next()
			for range 1000 {
				give(h.gained)
				time.Sleep(time.Millisecond) // virtual
			}
			if n := k.looked(); n < 50 || n > 111 {
				t.Errorf("looked %d times in a second", n)
			}
		})
	})
	t.Run("events without a difference send nothing", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			give(h.lost)
			give(h.gained)
			ls, took := next()
			want(t, ls, took, nil, time.Minute)
		})
	})
	t.Run("a storm of gains is looked at ten times a second", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			for range 1000 {
				give(h.gained)
				time.Sleep(time.Millisecond) // virtual
			}
			if n := k.looked(); n > 11 {
				t.Errorf("looked %d times in a second", n)
			}
		})
	})
	t.Run("a look that fails is repeated", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			k.set(errors.New("interrupted"))
			give(h.lost)
			synctest.Wait()
			k.set(nil)
			ls, took := next()
			want(t, ls, took, nil, settle)
		})
	})
	t.Run("without events it polls", func(t *testing.T) {
		inWatch(t, []link.Link{a}, func(k *kernelFake, h hints, next func() ([]link.Link, time.Duration)) {
			close(h.dead)
			time.Sleep(settle + time.Millisecond)
			k.set(nil, a, b)
			ls, took := next()
			want(t, ls, took, []link.Link{a, b}, poll-time.Millisecond)
		})
	})
}
