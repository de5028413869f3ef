package daemon

import (
	"context"
	"errors"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/appbridge"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// followWishes pairs with relays and forgets them as the app asks, and applies the token of the gateway, until ctx
// ends.
func (d *Daemon) followWishes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case token := <-d.appBridge.bridge.Tokens():
			if d.gateway != nil {
				d.gateway.SetToken(token)
			}
		case p := <-d.appBridge.bridge.Pairings():
			address, err := p.Address, error(nil)
			if p.Invitation != "" {
				address, err = d.out.Pair(ctx, p.Invitation)
			} else {
				err = d.out.Forget(address)
			}
			if err != nil {
				code := pairingCode(err)
				d.log.Warn("not done what the app wants of a relay", "code", code, "error", err)
				p.Failed(code, err)
				continue
			}
			p.Done(address)
			d.appBridge.changed()
		}
	}
}

// pairingCode returns the code of an error of Pair or Forget.
func pairingCode(err error) appbridge.Code {
	e, _ := errors.AsType[*link.DialError](err)
	switch {
	case errors.Is(err, relay.ErrNotInvitation):
		return appbridge.CodeBadLink
	case errors.Is(err, relay.ErrNotSaved):
		return appbridge.CodeNotSaved
	case errors.Is(err, relay.ErrWrongKey):
		return appbridge.CodeWrongKey
	case errors.Is(err, relay.ErrRefused):
		return appbridge.CodeRefused
	case errors.Is(err, engine.ErrNoLink):
		return appbridge.CodeNoLink
	case errors.Is(err, link.ErrDenied):
		return appbridge.CodeForbidden
	case e != nil && e.Op == link.OpResolve:
		return appbridge.CodeUnknownName
	}
	return appbridge.CodeUnreachable
}
