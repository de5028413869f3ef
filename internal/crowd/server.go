package crowd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// ErrUnknown is an Owner's error if the user cannot be determined, and asking again would not help.
var ErrUnknown = errors.New("the user of a connection is not known")

// Owner returns the user ID of a client on this machine by the two ends of its connection.
type Owner func(local, remote netip.AddrPort) (uid uint32, err error)

// UserOf returns the user of a connection that a server has accepted; owner may be nil.
func UserOf(c net.Conn, owner Owner) User {
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return Unknown
	}
	if a := remote.AddrPort().Addr().Unmap(); !a.IsLoopback() {
		return User{UID: -1, Addr: a}
	}
	u, _ := Local(local.AddrPort(), remote.AddrPort(), owner)
	return u
}

// Local returns the user of a connection within this machine by its two ends, as the client sees them; owner may be nil. If
// owner fails, Local returns its error and Unknown.
func Local(local, remote netip.AddrPort, owner Owner) (User, error) {
	if owner == nil {
		return Unknown, nil
	}
	uid, err := owner(local, remote)
	if err != nil {
		return Unknown, err
	}
	return User{UID: int64(uid)}, nil
}

// Guard makes a server, which must not serve yet, close connections beyond the limits.
func (c *Crowd) Guard(s *http.Server, owner Owner) {
	var inside sync.Map // net.Conn -> User
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		u := UserOf(nc, owner)
		if c.Enter(u, true, nc) == Inside {
			inside.Store(nc, u)
		} else {
			_ = nc.Close() // the server finds out at its first read
		}
		return ctx
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		switch state {
		case http.StateActive:
			c.Spoke(nc)
			return
		case http.StateIdle:
			if u, ok := inside.Load(nc); ok {
				c.Paused(u.(User), nc)
			}
			return
		case http.StateNew:
			return
		case http.StateClosed, http.StateHijacked:
		}
		if u, ok := inside.LoadAndDelete(nc); ok {
			c.Leave(u.(User), Inside, nc)
		}
	}
}
