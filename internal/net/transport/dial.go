package transport

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/link"
)

// linkPath is the Path of a link with the parts common to all kinds of links: it counts and remembers connections, and
// applies the link's limits to them.
type linkPath struct {
	t    *Transport
	link link.Link // with its own Path
}

// Dial implements link.Path.
func (p *linkPath) Dial(ctx context.Context, network, addr string) (net.Conn, link.Info, error) {
	t := p.t
	slot, err := t.slot(ctx, p.link.Name, addr)
	if err != nil {
		return nil, link.Info{}, err
	}
	dialed, info, err := p.link.Dial(ctx, network, addr)
	if err != nil {
		slot.Release()
		return nil, info, err
	}
	if !info.Local {
		t.conns.Add(p.link, dialed) // the connection may later show whether the link still works
		t.engine.Connected(p.link, addr, info.Origin.Addr())
		t.placer.Connected(p.link.Name, info.RTT)
	}
	c := conn.Of(dialed)
	slot.Hold(c)
	if err := t.bounded(c, p.link); err != nil {
		return nil, info, &link.DialError{Link: p.link.Name, Op: link.OpConnect, Err: err}
	}
	if !info.Local {
		t.counted(c, p.link.Name)
	}
	return c, info, nil
}

// slot takes a slot for a connection, if need be from an idle connection.
func (t *Transport) slot(ctx context.Context, name, addr string) (link.Slot, error) {
	if link.IsApart(ctx) {
		return t.slots.TakeSpare(name, addr)
	}
	return t.slots.TakeFrom(name, addr,
		func() { t.pool.DropHost(name, link.HostOf(addr)) },
		func() { t.passThrough.DropIdle(name) },
	)
}

// bounded applies the limits of a link to a connection. A connection that cannot be counted is an error, and closed.
func (t *Transport) bounded(c *conn.Conn, l link.Link) error {
	cfg := t.live.Load()
	t.rates.Limit(c, cmp.Or(cfg.RateTable(l.Name), l.Name))
	return t.data.count(c, cfg, l)
}

// Revalidate implements link.Revalidator.
func (p *linkPath) Revalidate(addr string, c net.Conn) error { return p.link.Revalidate(addr, c) }

// Probe implements link.Path.
func (p *linkPath) Probe(ctx context.Context) error { return p.link.Probe(ctx) }

// dialer returns the Dialer for devices: it connects only where reach allows.
func (t *Transport) dialer() *link.Dialer {
	return &link.Dialer{
		Binder: t.binder,
		Allow:  t.check,
		Resolver: &link.Resolver{
			Binder: t.binder, AllLinksAllowed: anyAllowed(*t.live.Load()), Over: t.reach.Over, Names: t.names,
		},
		Buffer: t.buffer,
		RTT:    func(l link.Link) time.Duration { return t.engine.RTT(l.Name) },
		Slots:  t.slots,
	}
}

// buffer returns the SO_RCVBUF of a new socket over a link, in bytes, 0 to leave it to the kernel.
func (t *Transport) buffer(l link.Link) int {
	return t.data.buffer(t.live.Load(), l)
}
