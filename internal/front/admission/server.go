package admission

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/tributary-http/tributary/internal/front/cutoff"
)

// ErrUnknown is the error of an Owner if the user cannot be determined and asking again would not help.
var ErrUnknown = errors.New("cannot find the user of a connection")

// Owner returns the user ID of a client on this machine, given the two ends of its connection.
type Owner func(local, remote netip.AddrPort) (uid uint32, err error)

// UserOf returns the user of a connection that a server accepted; owner may be nil.
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

// Local returns the user of a connection within this machine, given its two ends as the client sees them; owner may be
// nil. If owner fails, Local returns its error and Unknown.
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

// guarded is a connection with its place.
type guarded struct {
	user    User
	place   Place
	welcome bool
}

type guardedKey struct{}

// PlaceOf returns the place of the connection on which a guarded server received the request, and whether its user is
// welcome.
func PlaceOf(ctx context.Context) (place Place, welcome bool) {
	g, _ := ctx.Value(guardedKey{}).(guarded)
	return g.place, g.welcome
}

// UserFrom returns the user of the connection on which a guarded server received the request; Unknown for any other
// server.
func UserFrom(ctx context.Context) User {
	if g, ok := ctx.Value(guardedKey{}).(guarded); ok {
		return g.user
	}
	return Unknown
}

// Unsent is the number of bytes that the kernel buffers for a client beyond those in flight. Without a bound it buffers
// some megabytes for each client that reads slowly, outside of any budget.
const Unsent = 128 << 10

// Guard makes a server, which has its handler but must not serve yet, close connections beyond the limits. If welcome
// is not nil, users for which it returns false are not let in. If refused clients have places, a handler calls PlaceOf
// to find out who is there.
func (c *Control) Guard(s *http.Server, owner Owner, welcome func(User) bool) {
	var inside sync.Map // net.Conn -> guarded
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		BoundUnsent(nc, Unsent)
		g := guarded{user: UserOf(nc, owner)}
		g.welcome = welcome == nil || welcome(g.user)
		if g.place = c.Enter(g.user, g.welcome, nc); g.place == Dropped {
			_ = nc.Close() // the server notices at its first read
		} else {
			inside.Store(nc, g)
		}
		return context.WithValue(ctx, guardedKey{}, g)
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		switch state {
		case http.StateActive:
			c.Spoke(nc)
			return
		case http.StateIdle:
			if v, ok := inside.Load(nc); ok && v.(guarded).place == Admitted {
				c.Paused(v.(guarded).user, nc)
			}
			return
		case http.StateNew:
			return
		case http.StateClosed, http.StateHijacked:
		}
		if v, ok := inside.LoadAndDelete(nc); ok {
			c.Leave(v.(guarded).user, v.(guarded).place, nc)
		}
	}
	cutoff.Show(s)
}
