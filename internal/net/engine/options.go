package engine

import (
	"context"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/spread"
)

// Options are what a context says about its requests and tunnels, besides HTTP. The zero value asks for nothing.
type Options struct {
	// Flow says who asks: connections with the same User, Program and Host may be spread over links. If Program is
	// empty, it is the User-Agent of the request unless the flow is Redirected; if Host is empty, it is the dialed
	// host. The other fields are ignored.
	Flow spread.Flow
	// Links says which links may carry it. Its Exposes is added to what the fields of a request say.
	Links policy.Request
	// Consent, if not nil, makes Links Unmetered while it is withheld.
	Consent *Consent

	// Size is the probable size of the object in bytes; 0 = unknown. A wrong one costs a small request per unmetered
	// link.
	Size int64
	// Undivided is the reason why requests go over one link, "" if they need not. Metrics show it.
	Undivided string
	// Repeatable requests are divided even if the scheme of their credentials is unknown: they may be sent several
	// times.
	Repeatable bool
	// Usage, if not nil, records the links and bytes that the requests use.
	Usage *Usage
}

// Request returns what package policy needs to know now.
func (o *Options) Request() policy.Request {
	r := o.Links
	r.Unmetered = r.Unmetered || o.Consent != nil && !o.Consent.Given()
	return r
}

type optionsKey struct{}

// With returns a context whose Options change makes from those of ctx.
func With(ctx context.Context, change func(o *Options)) context.Context {
	o := OptionsOf(ctx)
	change(&o)
	return context.WithValue(ctx, optionsKey{}, o)
}

// OptionsOf returns the Options of a context.
func OptionsOf(ctx context.Context) Options {
	o, _ := ctx.Value(optionsKey{}).(Options)
	return o
}

// Consent says whether links that cost money may carry the requests and tunnels of a client. It may change while they
// run: the engine asks again after SetLinks, and for the others see direct.PassThrough.Withdraw. The zero value gives
// consent. Safe for concurrent use.
type Consent struct{ withheld atomic.Bool }

// Give sets whether consent is given, and reports whether that changed.
func (c *Consent) Give(yes bool) (changed bool) { return c.withheld.Swap(!yes) == yes }

// Given reports whether links that cost money may be used.
func (c *Consent) Given() bool { return !c.withheld.Load() }
