package direct

import (
	"context"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// Withdraw aborts the requests under way that may use only unmetered links, if metered returns true for the link that
// carries them. They fail with an *engine.AttemptError. Call it whenever a link becomes metered or a Consent is
// withdrawn.
func (p *PassThrough) Withdraw(metered func(link string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.under {
		if o := engine.OptionsOf(x.ctx); metered(x.link) && o.Request().Unmetered {
			x.cancel(engine.ErrCosts)
		}
	}
}

// charges reports whether what ctx asks for must not use the named link, which may have become metered since it was
// chosen.
func (p *PassThrough) charges(ctx context.Context, name string) bool {
	o := engine.OptionsOf(ctx)
	r := o.Request()
	if !r.Unmetered { // what else forbids a link does not change
		return false
	}
	for _, l := range p.links() {
		if l.Name == name {
			return !r.Permits(l.Terms)
		}
	}
	return false
}

// costs returns the error of a flow that may no longer use its link.
func costs(op, link string) error {
	return &engine.AttemptError{Op: op, Link: link, Outcome: fault.LinkLost, Err: engine.ErrCosts}
}
