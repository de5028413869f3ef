// Package crowd counts the connections of each user, so that one user of a machine cannot starve the others.
//
// Loopback is open to every user and every app of a machine, welcome or not. A connection is counted when it is accepted, so a
// client that only holds connections open is counted, too. A known user always has a few places, however many the others have,
// until the reserve for that is used up; named users have theirs in any case. A client that is not welcome, or has too many
// connections, may stay on the doorstep to receive the reason: there are few places, and a newcomer takes the place of the client
// that has been there longest.
//
// All methods are safe for concurrent use and never block.
package crowd

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
	Each     int // connections of one user
	Sure     int // connections that one user of this machine can always have, however many there are in all
	All      int // connections of all users together, apart from the sure ones
	Reserve  int // sure connections beyond All, of users who are not Named: user IDs are cheap where users have subordinate ones
	Doorstep int // connections that only receive the reason why they are not let in
}

// Crowd counts connections. The zero value lets nobody in.
type Crowd struct {
	Limits
	Named []uint32 // users who have their sure places even if the reserve is used up

	mu       sync.Mutex
	of       map[User]int
	all      int
	doorstep []net.Conn // the one that has been there longest first
	silent   []net.Conn // connections inside, of Unknown, without a request; the one that has been silent longest first
}

// Place is where a connection has been put.
type Place uint8

// The places.
const (
	Out      Place = iota // it must be closed
	Doorstep              // it may receive the reason why it is not let in
	Inside
)

// Enter gives the connection of a user a place. Unless that is Out, the caller must call Leave. Connections that have to make
// room on the doorstep are closed.
func (c *Crowd) Enter(u User, welcome bool, conn net.Conn) Place {
	c.mu.Lock()
	place, makesRoom := c.enter(u, welcome, conn)
	c.mu.Unlock()
	if makesRoom != nil {
		_ = makesRoom.Close()
	}
	return place
}

func (c *Crowd) enter(u User, welcome bool, conn net.Conn) (place Place, makesRoom net.Conn) {
	n := c.of[u]
	room := n < c.Each && (c.all < c.All || c.sure(u, n))
	if welcome && !room && u == Unknown && len(c.silent) > 0 { // Unknown is many users: one must not shut the others out
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
		return Inside, makesRoom
	}
	if c.Limits.Doorstep == 0 {
		return Out, nil
	}
	if len(c.doorstep) >= c.Limits.Doorstep {
		makesRoom = c.doorstep[0]
		c.doorstep = slices.Delete(c.doorstep, 0, 1)
	}
	c.doorstep = append(c.doorstep, conn)
	return Doorstep, makesRoom
}

// sure reports whether one of the sure places is free for a user who has n. The lock must be held.
func (c *Crowd) sure(u User, n int) bool {
	return u.Known() && n < c.Sure && (c.all < c.All+c.Reserve || slices.Contains(c.Named, uint32(u.UID)))
}

// Spoke records that a connection inside carries a request.
func (c *Crowd) Spoke(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

// Paused records that a connection of a user waits for its next request.
func (c *Crowd) Paused(u User, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forget(conn); u == Unknown {
		c.silent = append(c.silent, conn)
	}
}

func (c *Crowd) forget(conn net.Conn) {
	c.silent = slices.DeleteFunc(c.silent, func(o net.Conn) bool { return o == conn })
}

// Leave gives back the place of a connection.
func (c *Crowd) Leave(u User, place Place, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch place {
	case Inside:
		c.forget(conn)
		c.all--
		if c.of[u]--; c.of[u] == 0 {
			delete(c.of, u)
		}
	case Doorstep:
		c.doorstep = slices.DeleteFunc(c.doorstep, func(o net.Conn) bool { return o == conn })
	case Out:
	}
}
