package direct

import (
	"context"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// Consent says whether links that cost money may carry the requests and tunnels of a client. It may change while they run, see
// [PassThrough.Withdraw]. The zero value gives consent. Safe for concurrent use.
type Consent struct{ withheld atomic.Bool }

// Give sets whether consent is given, and reports whether that changed.
func (c *Consent) Give(yes bool) (changed bool) { return c.withheld.Swap(!yes) == yes }

// Given reports whether links that cost money may be used.
func (c *Consent) Given() bool { return !c.withheld.Load() }

type consentKey struct{}

// WithConsent returns a context whose flow is Unmetered while c is withheld.
func WithConsent(ctx context.Context, c *Consent) context.Context {
	return context.WithValue(ctx, consentKey{}, c)
}

// Withdraw aborts the requests under way that may use only unmetered links, if metered returns true for the link that carries them.
// They fail with an *engine.AttemptError. Call it whenever a link becomes metered or a Consent is withdrawn.
func (p *PassThrough) Withdraw(metered func(link string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.under {
		if metered(x.link) && FlowOf(x.ctx).Unmetered {
			x.cancel(engine.ErrCosts)
		}
	}
}

// charges reports whether the flow of ctx must not use metered links and the named link is one: it may have become metered since
// the flow chose it.
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

// costs returns the error of a flow that may no longer use its link.
func costs(op, link string) error {
	return &engine.AttemptError{Op: op, Link: link, Outcome: fault.LinkLost, Err: engine.ErrCosts}
}
