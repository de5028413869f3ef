package transport

import (
	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// Settings returns the live configuration.
func (t *Transport) Settings() config.Config { return *t.live.Load() }

// Reload makes cfg the live configuration: links that it does not allow leave running transfers, others join.
func (t *Transport) Reload(cfg config.Config) {
	t.live.Store(&cfg)
	t.rates.Set(rates(cfg))
	t.dials.Store(t.dialer())
	t.upstream.Set(t.upstreams(cfg)...)
	if s, ok := t.device.(interface{ SetOptions(discover.Options) }); ok {
		s.SetOptions(LinkOptions(cfg))
	}
	t.LookAgain()
}
