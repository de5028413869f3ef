package origin

import (
	"context"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// prepared is a connection that is opened before a request needs it.
type prepared struct {
	done chan struct{} // closed when the pool keeps the connection, or it could not be made
	err  error         // set before done is closed
}

// Prepare connects to an origin that will probably get a request soon, and keeps the connection for a moment. An Open
// in the meantime waits for it and uses it. It does nothing if such a connection exists or is being prepared.
func (p *Pool) Prepare(ctx context.Context, l link.Link, t engine.Target) {
	k := keyOf(l, t)
	c := &prepared{done: make(chan struct{})}
	p.mu.Lock()
	known := p.coming[k] != nil
	for _, o := range p.idle {
		known = known || o.key == k
	}
	if !known {
		if p.coming == nil {
			p.coming = map[key]*prepared{}
		}
		p.coming[k] = c
	}
	p.mu.Unlock()
	if known {
		return
	}
	s, err := p.connect(ctx, l, t, p.tls)
	if err == nil {
		p.keep(s, warmTimeout)
	}
	p.mu.Lock()
	if p.coming[k] == c {
		delete(p.coming, k)
	}
	p.mu.Unlock()
	c.err = err
	close(c.done)
}

// await waits for the connection that is being prepared for k, if there is one and no other Open waits for it.
func (p *Pool) await(ctx context.Context, k key) error {
	p.mu.Lock()
	c := p.coming[k]
	delete(p.coming, k)
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
