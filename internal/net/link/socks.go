package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/net/proxy"
)

// socks5 is the handshake of SOCKS5 (RFC 1928), with a user and a password if they are set (RFC 1929).
func socks5(ctx context.Context, u *Upstream, to string) (net.Conn, error) {
	session := &socksSession{to: u}
	var auth *proxy.Auth
	if u.User != "" {
		auth = &proxy.Auth{User: u.User, Password: u.Password}
	}
	d, err := proxy.SOCKS5("tcp", u.Addr, auth, session)
	if err != nil {
		return nil, err
	}
	if _, err := d.(proxy.ContextDialer).DialContext(ctx, "tcp", to); err != nil {
		if session.conn != nil {
			session.conn.Close()
		}
		if errors.As(err, new(*BindError)) {
			return nil, err
		}
		return nil, session.failure(ctx, err)
	}
	return session.conn, nil
}

// socksSession is one connection to the proxy. It records what the proxy sends, since the library keeps only a text of
// it.
type socksSession struct {
	to   *Upstream
	conn net.Conn // nil = not connected
	err  error    // of connecting
	said []byte
}

// Dial implements proxy.Dialer.
func (u *socksSession) Dial(network, addr string) (net.Conn, error) {
	return u.DialContext(context.Background(), network, addr)
}

// DialContext implements proxy.ContextDialer.
func (u *socksSession) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	if u.conn, u.err = u.to.connect(ctx); u.err != nil {
		u.conn = nil
		return nil, u.err
	}
	return &noted{u.conn, u}, nil
}

// noted is a connection that records what it receives.
type noted struct {
	net.Conn
	u *socksSession
}

func (n *noted) Read(b []byte) (int, error) {
	k, err := n.Conn.Read(b)
	n.u.said = append(n.u.said, b[:k]...)
	return k, err
}

// Replies and methods of RFC 1928 sections 3 and 6.
const (
	withPassword        = 2
	noMethod            = 0xff
	notAllowed          = 2
	networkUnreachable  = 3
	hostUnreachable     = 4
	connectionRefused   = 5
	commandNotSupported = 7
	addressNotSupported = 8
)

// failure returns why there is no connection to an origin.
func (u *socksSession) failure(ctx context.Context, err error) error {
	if u.err != nil {
		return unreached(ctx, u.to.Addr, u.err)
	}
	if cause := ended(ctx, err); cause != nil {
		return fmt.Errorf("the upstream proxy %s does not respond: %w", u.to.Addr, cause)
	}
	switch u.reply() {
	case connectionRefused:
		return fmt.Errorf("the upstream proxy %s says: %w", u.to.Addr, syscall.ECONNREFUSED)
	case networkUnreachable:
		return fmt.Errorf("the upstream proxy %s says: %w", u.to.Addr, syscall.ENETUNREACH)
	case hostUnreachable:
		return fmt.Errorf("the upstream proxy %s says: %w", u.to.Addr, syscall.EHOSTUNREACH)
	case notAllowed, commandNotSupported, addressNotSupported:
		return fmt.Errorf("%w (%s)", ErrUpstreamRefused, u.to.Addr)
	}
	switch {
	case len(u.said) > 1 && u.said[1] == noMethod:
		return fmt.Errorf("the upstream proxy %s requires a login: set via = \"socks5://USER:PASSWORD@%s\"", u.to.Addr,
			u.to.Addr)
	case len(u.said) == 4 && u.said[1] == withPassword:
		return fmt.Errorf("the upstream proxy %s rejects the user and password of via", u.to.Addr)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fmt.Errorf("the upstream proxy %s: %v", u.to.Addr, err) // its errors are not an origin's
}

// reply returns the code of the proxy's reply to the request, 0 if there is none.
func (u *socksSession) reply() byte {
	at := 2
	if len(u.said) > 1 && u.said[1] == withPassword {
		at += 2
	}
	if len(u.said) < at+2 {
		return 0
	}
	return u.said[at+1]
}
