package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/mptcp"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// newSecondEnd returns the second end that the [relay] table names.
func (t *Transport) newSecondEnd(r config.Relay, c Config) (secondEnd, error) {
	if r.URL == "" {
		return t.newRelay(c.RelayState, append([]string{r.Address}, r.Others...))
	}
	u, err := mptcp.ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	m := &multipath{t: t}
	m.proxy = mptcp.New(u, m.connect, &tls.Config{RootCAs: c.Roots})
	return m, nil
}

// newRelay returns the client of paired relays.
func (t *Transport) newRelay(state string, addresses []string) (secondEnd, error) {
	budget := int64(t.cfg.Budget)
	if len(addresses) > 1 {
		nearest, err := relay.NewNearest(state, addresses, budget, t.log)
		if err != nil {
			return nil, err
		}
		return nearest, nil
	}
	client, err := relay.NewClient(state, addresses[0], budget, t.log)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// multipath carries tunnels through a proxy to which the kernel connects over several links.
type multipath struct {
	t     *Transport
	proxy *mptcp.Proxy
	links atomic.Pointer[[]link.Link] // links that may carry tunnels
}

// errUncounted means that the kernel would use a link whose bytes Tributary has to count or to slow down.
var errUncounted = errors.New("no link can carry MPTCP: it needs a link without an upstream proxy, a data limit or max_rate")

// SetLinks implements secondEnd. The kernel does not report in time how many bytes it sends over which link, so it may use only
// links whose bytes need not be counted.
func (m *multipath) SetLinks(all []link.Link) {
	limited := rates(*m.t.live.Load())
	var use []link.Link
	for _, l := range link.Affordable(all) {
		if _, slow := limited[l.Name]; !slow && l.Via == "" && m.t.Left(l.Name) == nil {
			use = append(use, l)
		}
	}
	m.links.Store(&use)
}

// Run implements secondEnd.
func (m *multipath) Run(context.Context) {}

// Dial implements secondEnd.
func (m *multipath) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return m.proxy.Dial(ctx, addr)
}

// connect connects to the proxy, over the first link; the kernel adds the others.
func (m *multipath) connect(ctx context.Context, addr string) (net.Conn, error) {
	links := m.links.Load()
	if links == nil || len(*links) == 0 {
		return nil, errUncounted
	}
	settings, err := mptcp.Read()
	if err != nil {
		return nil, err
	}
	if err := settings.Check(interfaces(*links)); err != nil {
		m.t.log.Warn("each tunnel uses one link", "error", err)
		return nil, err
	}
	d := m.t.dialer()
	d.Multipath, d.Slots = true, nil
	c, _, err := d.Dial(ctx, (*links)[0], "tcp", addr)
	return c, err
}

// interfaces returns links in the form that package mptcp uses.
func interfaces(links []link.Link) (all []mptcp.Interface) {
	for _, l := range links {
		all = append(all, mptcp.Interface{Name: l.Name, Addrs: l.Addrs})
	}
	return all
}

// Status implements secondEnd.
func (m *multipath) Status() relay.Status {
	s := m.proxy.Status()
	return relay.Status{Address: m.proxy.Addr(), Streams: s.Tunnels, Multipath: &relay.Multipath{Subflows: s.Subflows, Plain: s.Plain}}
}
