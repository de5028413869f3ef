package transport

import (
	"context"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	maxExpected = 64               // most origins waiting for a connection; requests to others connect themselves
	prepareTime = 10 * time.Second // limit for one connection
)

// expected is an origin that is about to receive a request.
type expected struct {
	links  []link.Link
	target engine.Target
}

// prepare makes connections to an origin over those of the given links that a GET would use from its start.
func (t *Transport) prepare(links []link.Link, to engine.Target) {
	select {
	case t.expected <- expected{links, to}:
	default:
	}
}

// expect prepares connections until ctx ends.
func (t *Transport) expect(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-t.expected:
			for _, l := range e.links {
				if l.Terms.OnDemand() {
					continue
				}
				parts.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, prepareTime)
					defer cancel()
					t.pool.Prepare(ctx, l, e.target)
				})
			}
		}
	}
}
