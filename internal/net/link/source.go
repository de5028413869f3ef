package link

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

// Source reports which links exist.
type Source interface {
	// Watch sends the links at once and again whenever they differ from those it sent last; a slow receiver misses states in
	// between. The receiver must not change the slice. The channel is closed when ctx has ended and everything that Watch started
	// has ended. An error means that the links cannot be observed at all.
	Watch(ctx context.Context) (<-chan []Link, error)
}

// Changes is the difference between two snapshots.
type Changes struct {
	Added, Removed []Link
	Changed        []Link // as they are now
}

// Diff compares two snapshots by name. A link whose kernel index or handle differs is a new link with the same name: it is
// both removed and added.
func Diff(before, now []Link) Changes {
	var c Changes
	for _, b := range before {
		if n, ok := find(now, b.Name); !ok || !n.Same(b) {
			c.Removed = append(c.Removed, b)
		}
	}
	for _, n := range now {
		switch b, ok := find(before, n.Name); {
		case !ok || !b.Same(n):
			c.Added = append(c.Added, n)
		case !b.Equal(n):
			c.Changed = append(c.Changed, n)
		}
	}
	return c
}

// losses returns the links in shown without what is missing from now; new links and additions in now do not count yet. The result
// equals shown if nothing was lost.
func losses(shown, now []Link) []Link {
	left := make([]Link, 0, len(shown))
	for _, s := range shown {
		n, ok := find(now, s.Name)
		if !ok || !n.Same(s) {
			continue
		}
		addrs := slices.DeleteFunc(slices.Clone(s.Addrs), func(a netip.Addr) bool { return !slices.Contains(n.Addrs, a) })
		if len(addrs) == 0 {
			continue
		}
		s.Addrs = addrs
		left = append(left, s)
	}
	return left
}

func find(links []Link, name string) (Link, bool) {
	i := slices.IndexFunc(links, func(l Link) bool { return l.Name == name })
	if i < 0 {
		return Link{}, false
	}
	return links[i], true
}

// Static is a Source with links that its owner sets. The zero value has none.
type Static struct {
	mu      sync.Mutex
	links   []Link
	changed chan struct{} // closed by the next Set; nil if nobody waits
}

// NewStatic returns a Source with these links.
func NewStatic(links ...Link) *Static {
	return &Static{links: slices.Clone(links)}
}

// Set replaces the links.
func (s *Static) Set(links ...Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.Clone(links)
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Watch implements [Source]; it never fails.
func (s *Static) Watch(ctx context.Context) (<-chan []Link, error) {
	out := make(chan []Link)
	go s.serve(ctx, out)
	return out, nil
}

func (s *Static) serve(ctx context.Context, out chan<- []Link) {
	defer close(out)
	var sent []Link
	for first := true; ; {
		links, changed := s.now()
		send := out
		if !first && equalLinks(links, sent) {
			send = nil
		}
		select {
		case <-ctx.Done():
			return
		case send <- links:
			sent, first = links, false
		case <-changed:
		}
	}
}

// now returns the links and a channel that is closed when they are replaced.
func (s *Static) now() ([]Link, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.links, s.changed
}
