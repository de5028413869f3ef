package link

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// sockets returns a dialer for sockets of a network ("tcp", "udp") over l to an address.
func sockets(b Binder, l Link, network string, to netip.Addr) *net.Dialer {
	d := &net.Dialer{
		Control: withUserTimeout(b.Control(l)),
		// An idle connection over a link that vanished ends within half a minute.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	if from, ok := l.Addr(to.Is6()); ok && l.SourceRouted {
		src := netip.AddrPortFrom(from, 0)
		d.LocalAddr = net.TCPAddrFromAddrPort(src)
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(src)
		}
	}
	return d
}

// resend is the time after which a DNS question over UDP is sent again for the first time; then the time doubles (RFC
// 1035 section
// 4.2.1 asks for patience; RFC 6298 section 2.1 has 1 s for an unknown path).
const resend = time.Second

// query is a connected UDP socket with one outstanding question, which it repeats until a datagram arrives:
// net.Resolver waits five seconds for a lost one. A late answer to the first copy counts, since all copies share socket
// and ID.
type query struct {
	*net.UDPConn
	question []byte
	// called when the server turns out not to understand EDNS; nil = it is known, so the question has none
	refused  func()
	deadline time.Time
	wait     time.Duration
	again    time.Time
}

// newQuery takes over c; it is closed when ctx is canceled, which net.Resolver does not do by itself.
func newQuery(ctx context.Context, c *net.UDPConn) *query {
	closeOnCancel(ctx, c)
	return &query{UDPConn: c, wait: resend}
}

func (q *query) SetDeadline(t time.Time) error {
	q.deadline = t
	return q.UDPConn.SetDeadline(t)
}

func (q *query) Write(b []byte) (int, error) {
	q.question = bytes.Clone(b)
	if q.refused == nil {
		q.question = withoutEDNS(q.question)
	}
	q.again = time.Now().Add(q.wait)
	if _, err := q.UDPConn.Write(q.question); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (q *query) Read(b []byte) (int, error) {
	for {
		until := q.again
		last := !q.deadline.IsZero() && q.deadline.Before(until)
		if last {
			until = q.deadline
		}
		if err := q.SetReadDeadline(until); err != nil {
			return 0, err
		}
		n, err := q.UDPConn.Read(b)
		switch {
		case err == nil && q.refused != nil && refusesEDNS(q.question, b[:n]):
			q.refused()
			q.refused, q.question = nil, withoutEDNS(q.question)
		case last || !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		default:
			q.wait *= 2
		}
		if _, err := q.UDPConn.Write(q.question); err != nil {
			return 0, err
		}
		q.again = time.Now().Add(q.wait)
	}
}

// closeOnCancel closes c when ctx is canceled. It does nothing at the deadline of ctx: c has that deadline itself and
// returns a better error.
func closeOnCancel(ctx context.Context, c net.Conn) {
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			c.Close()
		}
	})
}
