package gateway

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// Index pages arrive in memory. So that one can always be completed, the page that came first need not wait. Of all
// others together there are at most maxShelf bytes. Pages of one host have maxOfHost, except for the one that came
// first of them.
const (
	maxShelf  = maxIndex + pieceSize // the last piece of the largest page is empty
	maxOfHost = maxIndex / 2
	pieceSize = 64 << 10
	// pageTime is how long a page may take to arrive: it may keep others waiting.
	pageTime = time.Minute
)

var (
	errLarge = errors.New("the index page is larger than 16 MiB")
	errLate  = errors.New("the index page took longer than a minute")
)

// shelf holds pages that arrive. The zero value is empty.
type shelf struct {
	mu    sync.Mutex
	pages []*arriving   // in the order in which they came
	freed chan struct{} // closed when a page leaves; nil = nobody waits
}

// arriving is a page on the shelf.
type arriving struct {
	host   string
	size   int64 // memory in bytes
	pieces [][]byte
}

// read receives a page. Unless it fails, the caller must call leave when it no longer needs the page.
func (s *shelf) read(ctx context.Context, host string, r io.Reader) (*arriving, error) {
	p := &arriving{host: host}
	s.mu.Lock()
	s.pages = append(s.pages, p)
	s.mu.Unlock()
	if err := s.fill(ctx, p, r); err != nil {
		s.leave(p)
		return nil, err
	}
	return p, nil
}

func (s *shelf) fill(ctx context.Context, p *arriving, r io.Reader) error {
	for received := 0; ; {
		if err := s.grow(ctx, p); err != nil {
			return err
		}
		piece := make([]byte, pieceSize)
		n, err := 0, error(nil)
		for n < pieceSize && err == nil { // not io.ReadFull, for which a page that breaks off looks like one that ends
			var more int
			more, err = r.Read(piece[n:])
			n += more
		}
		p.pieces = append(p.pieces, piece[:n])
		received += n
		switch {
		case received > maxIndex:
			return errLarge
		case err == io.EOF:
			return nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
}

// grow waits until there is room for one more piece of a page.
func (s *shelf) grow(ctx context.Context, p *arriving) error {
	for {
		s.mu.Lock()
		if s.room(p) {
			p.size += pieceSize
			s.mu.Unlock()
			return nil
		}
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// room reports whether there is room for one more piece of a page. The lock must be held.
func (s *shelf) room(p *arriving) bool {
	others, ofHost, first := int64(pieceSize), int64(pieceSize), (*arriving)(nil)
	for i, o := range s.pages {
		if i > 0 {
			others += o.size
		}
		if o.host == p.host {
			ofHost += o.size
			if first == nil {
				first = o
			}
		}
	}
	return s.pages[0] == p || others <= maxShelf && (first == p || ofHost <= maxOfHost)
}

// leave takes a page off the shelf.
func (s *shelf) leave(p *arriving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = slices.DeleteFunc(s.pages, func(o *arriving) bool { return o == p })
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}
