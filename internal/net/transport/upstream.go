package transport

import (
	"fmt"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// upstreams returns the links through an upstream proxy.
func (t *Transport) upstreams(cfg config.Config) (all []link.Link) {
	for _, name := range cfg.Upstreams() {
		c := cfg.LinkOf(name)
		u := c.Upstream()
		l := link.Link{
			Name:    name,
			Kind:    u.Scheme,
			Via:     u.Scheme + "://" + u.Host,
			Metric:  link.Unranked,
			Network: name + " " + u.Host,
		}
		if c.Metered != nil {
			l.Terms.Metered = *c.Metered
		}
		p := &link.Upstream{
			Link:   l,
			Scheme: u.Scheme,
			Addr:   u.Host,
			Binder: t.binder,
			Check:  t.check,
			Buffer: t.buffer,
		}
		if u.User != nil {
			p.User = u.User.Username()
			p.Password, _ = u.User.Password()
		}
		l.Path = p
		all = append(all, l)
	}
	return all
}

// upstreamCandidates returns the same links with the decision about each.
func (t *Transport) upstreamCandidates(cfg config.Config) (all []discover.Candidate) {
	for _, l := range t.upstreams(cfg) {
		c := discover.Candidate{
			Link: l, Use: cfg.Allows(l.Name), Reason: "uses the upstream proxy " + l.Via + ", which resolves names",
		}
		switch e := cfg.LinkOf(l.Name).Enabled; {
		case c.Use:
		case e != nil && !*e:
			c.Reason = fmt.Sprintf("[link.%s] of the configuration says enabled = false", l.Name)
		default:
			c.Reason = "not one of the links that were named"
		}
		all = append(all, c)
	}
	return all
}
