package engine

import (
	"net/http"
	"sync"
)

// gate lets interim answers through until the final one is known.
type gate struct {
	mu     sync.Mutex
	closed bool
}

func (g *gate) pass(to func(int, http.Header)) func(int, http.Header) {
	return func(status int, h http.Header) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed {
			to(status, h)
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
