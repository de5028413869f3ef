package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Times of RFC 8305: section 5 (next attempt) and section 3 (how long to wait for the IPv6 answer once the IPv4 answer
// is there).
const (
	attemptDelay    = 250 * time.Millisecond
	resolutionDelay = 50 * time.Millisecond
)

// race is one dial: addresses come in by family, attempts start one after the other. It is owned by run.
type race struct {
	dialer *Dialer
	link   Link
	addr   string // as asked for
	host   string
	port   uint16

	lookups  int             // still running
	over     Link            // the interface that the winner is bound to
	running  int             // attempts
	queue    [2][]netip.Addr // not tried yet, by family
	turn     family          // family of the next address, if it has one
	tried    int             // number of addresses tried
	to       netip.AddrPort  // last address tried
	on       Link            // interface that its socket is bound to
	repeat   repeat          // of the only attempt
	slot     Slot            // of the second handshake
	refused  int             // addresses that Allow refused
	held     bool            // waiting resolutionDelay for IPv6
	armed    bool            // the timer runs
	errs     []error         // of attempts and refusals
	unsolved []error         // of lookups
	names    chan named
	dialed   chan dialed
	timer    *time.Timer // of the next attempt
}

// repeat is the state of the second handshake, which runs alongside a first one whose packet may be lost.
type repeat uint8

const (
	repeatable repeat = iota
	roundTrip         // waiting for another round-trip time before the second handshake
	repeated
)

// named is the end of one lookup.
type named struct {
	family family
	addrs  []netip.Addr
	nat64  netip.Prefix // prefix of the link, if it was needed
	err    error
}

// dialed is the end of one attempt.
type dialed struct {
	conn net.Conn
	over Link // the interface that it is bound to
	err  error
}

// run returns the first connection. Everything else that it started has ended when it returns.
func (r *race) run(ctx context.Context, families []family) (net.Conn, error) {
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	r.names, r.dialed = make(chan named), make(chan dialed)
	r.timer = time.NewTimer(attemptDelay)
	r.timer.Stop()
	defer r.timer.Stop()
	r.turn = v6
	if to, _ := IsOnce(ctx); to.IsValid() {
		r.queue[r.turn] = []netip.Addr{to.Unmap()}
		r.link.NAT64 = r.dialer.Resolver.knownNAT64(r.link)
		r.next(ctx)
		families = nil
	}
	for _, f := range families {
		r.lookups++
		go r.lookup(ctx, r.link, f)
	}
	won := r.events(ctx)
	cancel()
	r.drain()
	r.slot.Release()
	if won != nil {
		return won, nil
	}
	return nil, r.failure(parent)
}

func (r *race) lookup(ctx context.Context, l Link, f family) {
	n := named{family: f, nat64: l.NAT64}
	if f == v6 {
		n.addrs, n.nat64, n.err = r.dialer.resolve64(ctx, l, r.host)
	} else {
		n.addrs, n.err = r.dialer.resolve(ctx, l, f, r.host)
	}
	r.names <- n
}

func (r *race) attempt(ctx context.Context, over Link, to netip.AddrPort) {
	c, err := r.dialer.open(ctx, over, to)
	r.dialed <- dialed{c, over, err}
}

// events handles events until a connection is made, no more events can come or ctx has ended.
func (r *race) events(ctx context.Context) net.Conn {
	for r.lookups > 0 || r.running > 0 {
		select {
		case <-ctx.Done():
			return nil
		case n := <-r.names:
			r.named(ctx, n)
		case <-r.timer.C:
			r.armed, r.held = false, false
			if r.next(ctx); !r.armed {
				r.again(ctx)
			}
		case o := <-r.dialed:
			r.running--
			if o.err == nil {
				r.over = o.over
				return o.conn
			}
			r.errs = append(r.errs, o.err)
			if !r.held {
				r.next(ctx)
			}
		}
	}
	return nil
}

// named handles the addresses of one family.
func (r *race) named(ctx context.Context, n named) {
	r.lookups--
	r.queue[n.family] = n.addrs
	if n.nat64.IsValid() {
		r.link.NAT64 = n.nat64
	}
	if n.err != nil {
		r.unsolved = append(r.unsolved, n.err)
	}
	switch {
	case r.running > 0 && r.armed: // the running attempt still has time
	case r.running == 0 && n.family == v4 && r.lookups > 0 && len(n.addrs) > 0:
		r.held = true
		r.arm(resolutionDelay)
	default:
		r.held = false
		r.next(ctx)
	}
}

// next starts an attempt to the next address that Allow does not refuse, if there is any.
func (r *race) next(ctx context.Context) {
	r.timer.Stop()
	r.armed = false
	for {
		a, ok := r.pop()
		if !ok {
			return
		}
		to, over := netip.AddrPortFrom(a, r.port), r.link
		if allow := r.dialer.Allow; allow != nil {
			name := r.host
			if _, isLit := literal(name); isLit {
				name = ""
			}
			var err error
			if over, err = allow(r.link, name, to); err != nil {
				r.refused++
				r.errs = append(r.errs, err)
				continue
			}
		}
		r.tried++
		r.to, r.on = to, over
		r.running++
		go r.attempt(ctx, over, to)
		r.arm(attemptDelay)
		return
	}
}

// again starts a second handshake with the only address if the first one is late: the kernel resends a lost packet only
// after a second. It does not on a metered link, where that is not worth its price, nor if the host has no free slot.
func (r *race) again(ctx context.Context) {
	_, once := IsOnce(ctx)
	if r.tried != 1 || r.running == 0 || r.repeat == repeated || r.link.Terms.Metered || once {
		return
	}
	if r.repeat == repeatable && r.dialer.RTT != nil {
		if rtt := r.dialer.RTT(r.link); rtt > 0 {
			r.repeat = roundTrip
			r.arm(rtt)
			return
		}
	}
	if s := r.dialer.Slots; s != nil {
		var err error
		if r.slot, err = s.Take(r.link.Name, r.addr); err != nil {
			return
		}
	}
	r.repeat = repeated
	r.running++
	go r.attempt(ctx, r.on, r.to)
}

func (r *race) arm(d time.Duration) {
	r.timer.Reset(d)
	r.armed = true
}

// pop takes the next address, families in turn.
func (r *race) pop() (netip.Addr, bool) {
	f := r.turn
	if len(r.queue[f]) == 0 {
		f = 1 - f
	}
	if len(r.queue[f]) == 0 {
		return netip.Addr{}, false
	}
	a := r.queue[f][0]
	r.queue[f] = r.queue[f][1:]
	r.turn = 1 - f
	return a, true
}

// drain waits for running attempts and closes connections that are made too late.
func (r *race) drain() {
	for r.lookups > 0 || r.running > 0 {
		select {
		case <-r.names:
			r.lookups--
		case o := <-r.dialed:
			r.running--
			if o.err == nil {
				o.conn.Close()
			}
		}
	}
}

// op returns the step of the dial that failed.
func (r *race) op() string {
	switch {
	case r.tried > 0:
		return OpConnect
	case r.refused > 0:
		return OpRefuse
	default:
		return OpResolve
	}
}

// failure joins the errors.
func (r *race) failure(ctx context.Context) error {
	errs := r.errs
	if r.tried == 0 {
		errs = append(errs, r.unsolved...)
	}
	if bind := firstError(errs...); bind != nil {
		if _, ok := errors.AsType[*BindError](bind); ok {
			return bind // the same for every address
		}
	}
	if ctx.Err() != nil {
		errs = append([]error{context.Cause(ctx)}, errs...)
	}
	if len(errs) == 0 {
		return notFound(r.host)
	}
	err := errs[0]
	for _, e := range errs[1:min(len(errs), 4)] {
		err = fmt.Errorf("%w; %w", err, e)
	}
	return err
}
