// Package admission counts the connections of each user, so that one user of a machine cannot starve the others.
//
// Loopback is open to every user and every app of a machine, welcome or not. A connection is counted when it is
// accepted, so a client that only holds connections open is counted, too. A known user always has a few places, however
// many the others have, until the reserve for that is used up; named users have theirs in any case. A client that is
// not welcome, or has too many connections, is refused: it may stay to receive the reason. There are few places for
// that, and a newcomer takes the place of the client that has been there longest.
//
// All methods are safe for concurrent use and never block.
//
// Reasons: docs/decisions/limits-per-user.md.
package admission

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// User identifies the owner of a connection.
type User struct {
	UID  int64      // user ID of a client on this machine; -1 = unknown
	Addr netip.Addr // address of a client on another machine
}

// Unknown stands for all users of this machine that cannot be told apart.
var Unknown = User{UID: -1}

// Known reports whether u is one user of this machine.
func (u User) Known() bool { return u.UID >= 0 && !u.Addr.IsValid() }

// Limits are the maximum numbers of connections.
type Limits struct {
	Each int // connections of one user
	Sure int // connections that one user of this machine can always have, however many there are in all
	All  int // connections of all users together, apart from the sure ones
	// sure connections beyond All, of users who are not Named: user IDs are cheap where users have subordinate ones
	Reserve int
	Refused int // connections that only receive the reason why they are not let in
}

// Control counts connections. The zero value lets nobody in.
type Control struct {
	Limits
	Named []uint32 // users who have their sure places even if the reserve is used up

	mu      sync.Mutex
	of      map[User]int
	all     int
	refused []net.Conn // the one that has been there longest first
	silent  []net.Conn // connections inside, of Unknown, without a request; the one that has been silent longest first
}

// Place is where a connection has been put.
type Place uint8

// The places.
const (
	Dropped Place = iota // it must be closed
	Refused              // it may receive the reason why it is not let in
	Admitted
)

// Enter gives the connection of a user a place. Unless that is Dropped, the caller must call Leave. Connections that
// have to make room for others that are refused are closed.
func (c *Control) Enter(u User, welcome bool, conn net.Conn) Place {
	c.mu.Lock()
	place, makesRoom := c.enter(u, welcome, conn)
	c.mu.Unlock()
	if makesRoom != nil {
		_ = makesRoom.Close()
	}
	return place
}

func (c *Control) enter(u User, welcome bool, conn net.Conn) (place Place, makesRoom net.Conn) {
	n := c.of[u]
	room := n < c.Each && (c.all < c.All || c.sure(u, n))
	// Unknown is many users: one must not shut the others out
	if welcome && !room && u == Unknown && len(c.silent) > 0 {
		makesRoom = c.silent[0]
		c.silent = slices.Delete(c.silent, 0, 1)
		room = true
	}
	if welcome && room {
		if c.of == nil {
			c.of = map[User]int{}
		}
		c.of[u]++
		c.all++
		if u == Unknown {
			c.silent = append(c.silent, conn)
		}
		return Admitted, makesRoom
	}
	if c.Limits.Refused == 0 {
		return Dropped, nil
	}
	if len(c.refused) >= c.Limits.Refused {
		makesRoom = c.refused[0]
		c.refused = slices.Delete(c.refused, 0, 1)
	}
	c.refused = append(c.refused, conn)
	return Refused, makesRoom
}

// sure reports whether one of the sure places is free for a user who has n. The lock must be held.
func (c *Control) sure(u User, n int) bool {
	return u.Known() && n < c.Sure && (c.all < c.All+c.Reserve || slices.Contains(c.Named, uint32(u.UID)))
}

// Spoke records that a connection inside carries a request.
func (c *Control) Spoke(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

// Paused records that a connection of a user waits for its next request.
func (c *Control) Paused(u User, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forget(conn); u == Unknown {
		c.silent = append(c.silent, conn)
	}
}

func (c *Control) forget(conn net.Conn) {
	c.silent = slices.DeleteFunc(c.silent, func(o net.Conn) bool { return o == conn })
}

// Leave gives back the place of a connection.
func (c *Control) Leave(u User, place Place, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch place {
	case Admitted:
		c.forget(conn)
		c.all--
		if c.of[u]--; c.of[u] == 0 {
			delete(c.of, u)
		}
	case Refused:
		c.refused = slices.DeleteFunc(c.refused, func(o net.Conn) bool { return o == conn })
	case Dropped:
	}
}
