package proxy

import (
	"context"
	"sync"

	"github.com/tributary-http/tributary/internal/net/transport"
)

// paying returns a context whose requests and tunnels use metered links only while their client may.
func (p *Proxy) paying(ctx context.Context, c *client) context.Context {
	if p.Meters == nil {
		return ctx
	}
	c.asks.Store(true)
	c.consent.Give(p.Meters(c.app))
	return transport.With(ctx, func(o *transport.Options) { o.Consent = &c.consent })
}

// flowing returns a context whose requests and tunnels belong to a flow.
func flowing(ctx context.Context, f transport.Flow) context.Context {
	return transport.With(ctx, func(o *transport.Options) { o.Flow = f })
}

// Withdraw sets the names of the links that are metered now, and resets the tunnels over them whose clients may not use
// metered links.
func (p *Proxy) Withdraw(metered map[string]bool) {
	p.metered.Store(&metered)
	p.tunnels.cut(p.costs)
}

// costs reports whether a tunnel uses a link that its client may not use. A tunnel without a link name goes through a
// relay, which may use metered links.
func (p *Proxy) costs(t *tunnel) bool {
	if t.origin == nil || !t.by.asks.Load() || t.by.consent.Given() {
		return false
	}
	metered := p.metered.Load()
	return t.link == "" || metered != nil && (*metered)[t.link]
}

// Reconsider calls Config.Meters again for each client that it was called for, and reports whether an answer changed:
// then the transport must check what is running. It resets the tunnels that are no longer allowed. It may take seconds.
func (p *Proxy) Reconsider() (changed bool) {
	if p.Meters == nil {
		return false
	}
	all := map[*client]bool{}
	p.clients.Range(func(_, c any) bool {
		all[c.(*client)] = true
		return true
	})
	for _, c := range p.tunnels.clients() {
		all[c] = true
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for c := range all {
		if !c.asks.Load() {
			continue
		}
		asked.Go(func() {
			if c.consent.Give(p.Meters(c.app)) {
				mu.Lock()
				defer mu.Unlock()
				changed = true
			}
		})
	}
	asked.Wait()
	if changed {
		p.tunnels.cut(p.costs)
	}
	return changed
}
