package crowd

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Owner tells the user ID of a client on this machine by the two ends of its connection.
type Owner func(local, remote netip.AddrPort) (uid uint32, err error)

// UserOf tells whose connection a server has accepted; owner may be nil.
func UserOf(c net.Conn, owner Owner) User {
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return Unknown
	}
	if a := remote.AddrPort().Addr().Unmap(); !a.IsLoopback() {
		return User{UID: -1, Addr: a}
	}
	return Local(local.AddrPort(), remote.AddrPort(), owner)
}

// Local tells whose connection it is within this machine by its two ends, as the client sees them; owner may be nil.
func Local(local, remote netip.AddrPort, owner Owner) User {
	if owner == nil {
		return Unknown
	}
	uid, err := owner(local, remote)
	if err != nil {
		return Unknown
	}
	return User{UID: int64(uid)}
}

// Guard makes a server, which must not serve yet, close the connections for which there is no place.
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
		if state != http.StateClosed && state != http.StateHijacked {
			return
		}
		if u, ok := inside.LoadAndDelete(nc); ok {
			c.Leave(u.(User), Inside, nc)
		}
	}
}
