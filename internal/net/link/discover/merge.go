package discover

import (
	"context"
	"slices"

	"github.com/tributary-http/tributary/internal/net/link"
)

// WithPaths returns a Source of the links of s, in which a link without a Path gets the one that path returns.
func WithPaths(s Source, path func(link.Link) link.Path) Source {
	return &combined{[]Source{s}, func(parts [][]link.Link) []link.Link {
		all := slices.Clone(parts[0])
		for i, l := range all {
			if l.Path == nil {
				all[i].Path = path(l)
			}
		}
		return all
	}}
}

// Merge returns a Source of the links of all sources, in their order. If several links have the same name, it keeps
// only the first.
func Merge(sources ...Source) Source {
	return &combined{sources, func(parts [][]link.Link) []link.Link {
		var all []link.Link
		for _, l := range slices.Concat(parts...) {
			if _, twice := find(all, l.Name); !twice {
				all = append(all, l)
			}
		}
		return all
	}}
}

// combined is a Source whose links are made from those of other sources.
type combined struct {
	of   []Source
	make func(parts [][]link.Link) []link.Link
}

// part is a snapshot of one source; ok is false when the source has ended.
type part struct {
	i     int
	links []link.Link
	ok    bool
}

// Watch implements [Source].
func (c *combined) Watch(ctx context.Context) (<-chan []link.Link, error) {
	ctx, cancel := context.WithCancel(ctx)
	var in []<-chan []link.Link
	for _, s := range c.of {
		ch, err := s.Watch(ctx)
		if err != nil {
			cancel()
			for _, ch := range in {
				for range ch { // until everything that was started has ended
				}
			}
			return nil, err
		}
		in = append(in, ch)
	}
	out := make(chan []link.Link)
	go c.serve(ctx, cancel, in, out)
	return out, nil
}

// serve sends once every source has sent something, and again after each change. It ends with the first of the sources,
// and waits for the others.
func (c *combined) serve(ctx context.Context, cancel context.CancelFunc, in []<-chan []link.Link,
	out chan<- []link.Link,
) {
	parts := make(chan part)
	for i, ch := range in {
		go func() {
			for links := range ch {
				parts <- part{i, links, true}
			}
			parts <- part{i: i}
		}()
	}
	defer close(out)
	running := len(in)
	defer func() {
		cancel()
		for running > 0 {
			if p := <-parts; !p.ok {
				running--
			}
		}
	}()
	now, seen := make([][]link.Link, len(in)), make([]bool, len(in))
	var next, sent []link.Link
	var send chan<- []link.Link // nil = there is nothing to send
	first := true
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-parts:
			if !p.ok {
				running--
				return
			}
			now[p.i], seen[p.i] = p.links, true
			if slices.Contains(seen, false) {
				continue
			}
			if next, send = c.make(now), out; !first && link.Equal(next, sent) {
				send = nil
			}
		case send <- next:
			sent, send, first = next, nil, false
		}
	}
}
