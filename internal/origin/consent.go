package origin

import (
	"context"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/fault"
)

// Consent says whether links that cost money may carry the requests and tunnels of a client. It may change while they run, see
// [PassThrough.Withdraw]. The zero value gives it. Safe for concurrent use.
type Consent struct{ withheld atomic.Bool }

// Give sets whether it is given, and reports whether that has changed.
func (c *Consent) Give(yes bool) (changed bool) { return c.withheld.Swap(!yes) == yes }

// Given reports whether links that cost money may be used.
func (c *Consent) Given() bool { return !c.withheld.Load() }

type consentKey struct{}

// WithConsent returns a context whose flow is Unmetered while the consent is not given.
func WithConsent(ctx context.Context, c *Consent) context.Context {
	return context.WithValue(ctx, consentKey{}, c)
}

// Withdraw aborts requests under way that may use only links without a cost, if metered returns true for the link that carries
// them. They fail with an *engine.AttemptError. It is called whenever a link has become metered, or a Consent has ended.
func (p *PassThrough) Withdraw(metered func(link string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.under {
		if metered(x.link) && FlowOf(x.ctx).Unmetered {
			x.cancel(engine.ErrCosts)
		}
	}
}

// charges reports whether a link has become one that a flow may not use, since the flow chose it.
func (p *PassThrough) charges(ctx context.Context, name string) bool {
	if !FlowOf(ctx).Unmetered {
		return false
	}
	for _, l := range p.links() {
		if l.Name == name {
			return l.Metered
		}
	}
	return false
}

// costs is the error of a flow whose link has become one that it may not use.
func costs(op, link string) error {
	return &engine.AttemptError{Op: op, Link: link, Outcome: fault.LinkLost, Err: engine.ErrCosts}
}
