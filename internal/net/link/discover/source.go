package discover

import (
	"context"
	"slices"
	"sync"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Source reports which links exist.
type Source interface {
	// Watch sends the links at once and again whenever they differ from those it sent last; a slow receiver misses
	// states in between. The receiver must not change the slice. The channel is closed when ctx has ended and
	// everything that Watch started has ended. An error means that the links cannot be observed at all.
	Watch(ctx context.Context) (<-chan []link.Link, error)
}

// Changes is the difference between two snapshots.
type Changes struct {
	Added, Removed []link.Link
	Changed        []link.Link // as they are now
}

// Diff compares two snapshots by name. A link whose kernel index or handle differs is a new link with the same name: it
// is both removed and added.
func Diff(before, now []link.Link) Changes {
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

func find(links []link.Link, name string) (link.Link, bool) {
	i := slices.IndexFunc(links, func(l link.Link) bool { return l.Name == name })
	if i < 0 {
		return link.Link{}, false
	}
	return links[i], true
}

// Static is a Source with links that its owner sets. The zero value has none.
type Static struct {
	mu      sync.Mutex
	links   []link.Link
	changed chan struct{} // closed by the next Set; nil if nobody waits
}

// NewStatic returns a Source with these links.
func NewStatic(links ...link.Link) *Static {
	return &Static{links: slices.Clone(links)}
}

// Set replaces the links.
func (s *Static) Set(links ...link.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.Clone(links)
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Watch implements [Source]; it never fails.
func (s *Static) Watch(ctx context.Context) (<-chan []link.Link, error) {
	out := make(chan []link.Link)
	go s.serve(ctx, out)
	return out, nil
}

func (s *Static) serve(ctx context.Context, out chan<- []link.Link) {
	defer close(out)
	var sent []link.Link
	for first := true; ; {
		links, changed := s.now()
		send := out
		if !first && link.Equal(links, sent) {
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
func (s *Static) now() ([]link.Link, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.links, s.changed
}
