package admission

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// fake is a connection that records only whether it was closed.
type fake struct {
	net.Conn
	closed bool
}

func (f *fake) Close() error { f.closed = true; return nil }

func TestManyClients(t *testing.T) {
	t.Run("R190 places", testPlaces)
	t.Run("R190 a server's connections", testGuard)
}

func testPlaces(t *testing.T) {
	alice, bob, carol := User{UID: 1}, User{UID: 2}, User{UID: 3}
	far := User{UID: -1, Addr: netip.MustParseAddr("192.0.2.1")}
	c := &Control{Limits: Limits{Each: 5, Sure: 2, All: 8, Reserve: 2, Refused: 2}}
	var inside []func()
	enter := func(u User, welcome bool, want Place) *fake {
		t.Helper()
		f := &fake{}
		got := c.Enter(u, welcome, f)
		if got != want {
			t.Fatalf("R190 %+v gets place %d, want %d", u, got, want)
		}
		if got == Admitted {
			inside = append(inside, func() { c.Leave(u, got, f) })
		}
		return f
	}
	for range 5 {
		enter(alice, true, Admitted)
	}
	first := enter(alice, true, Refused) // the sixth connection of one user
	for range 3 {
		enter(bob, true, Admitted)
	}
	second := enter(bob, true, Refused) // the ninth connection of all
	if first.closed || second.closed {
		t.Error("there was room for both")
	}
	enter(carol, true, Admitted) // has two sure places
	enter(carol, true, Admitted)
	enter(carol, true, Refused)
	if !first.closed || second.closed {
		t.Errorf("who stood there longest makes room: %v, %v", first.closed, second.closed)
	}
	enter(far, true, Refused)     // on another machine, without sure places
	enter(Unknown, true, Refused) // not a single user
	enter(alice, false, Refused)  // not welcome
	for _, leave := range inside {
		leave()
	}
	inside = nil
	for range 5 {
		enter(far, true, Admitted)
	}
	if len(c.of) != 1 || c.all != 5 {
		t.Errorf("%d users with %d connections", len(c.of), c.all)
	}
	none := &Control{Limits: Limits{Each: 1, All: 1}}
	if none.Enter(alice, false, &fake{}) != Dropped || none.Enter(alice, true, &fake{}) != Admitted || none.Enter(alice, true, &fake{}) != Dropped {
		t.Error("without places for refused clients")
	}
	stayed := &fake{}
	d := &Control{Limits: Limits{Refused: 1}}
	d.Leave(alice, d.Enter(alice, false, stayed), stayed)
	d.Enter(bob, false, &fake{})
	if stayed.closed {
		t.Error("one that has left makes room")
	}
}

func testGuard(t *testing.T) {
	owner := func(_, remote netip.AddrPort) (uint32, error) {
		if remote.Port()%2 == 0 {
			return 0, errors.New("not told")
		}
		return uint32(remote.Port()), nil
	}
	c := &Control{Limits: Limits{Each: 2, Sure: 1, All: 2, Reserve: 1}}
	s := &http.Server{}
	c.Guard(s, owner, nil)
	open := func(remote string) *addressed {
		nc := &addressed{remote: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(remote))}
		s.ConnContext(context.Background(), nc)
		return nc
	}
	a, b := open("127.0.0.1:11"), open("127.0.0.1:11")
	if third := open("127.0.0.1:11"); a.closed || b.closed || !third.closed {
		t.Error("R190 the third connection of a user is not the one that is closed")
	}
	if other := open("127.0.0.1:13"); other.closed {
		t.Error("R190 another user has no place")
	}
	if unknown := open("127.0.0.1:12"); !unknown.closed {
		t.Error("R190 who cannot be told has a place for sure")
	}
	s.ConnState(a, http.StateClosed)
	s.ConnState(a, http.StateClosed)
	s.ConnState(b, http.StateActive)
	if len(c.of) != 2 || c.all != 2 {
		t.Errorf("%v, %d in all", c.of, c.all)
	}
}

// A client that is not welcome, or has too many connections, is refused.
func TestGuardDoorstep(t *testing.T) {
	c := &Control{Limits: Limits{Each: 1, All: 9, Refused: 2}}
	s := &http.Server{}
	c.Guard(s, func(_, remote netip.AddrPort) (uint32, error) { return uint32(remote.Port()), nil }, func(u User) bool { return u.UID == 11 })
	for _, want := range []struct {
		remote  string
		place   Place
		welcome bool
	}{{"127.0.0.1:11", Admitted, true}, {"127.0.0.1:11", Refused, true}, {"127.0.0.1:13", Refused, false}} {
		nc := &addressed{remote: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(want.remote))}
		if place, welcome := PlaceOf(s.ConnContext(context.Background(), nc)); place != want.place || welcome != want.welcome {
			t.Errorf("%+v: %v, %v", want, place, welcome)
		}
		defer func() {
			s.ConnState(nc, http.StateIdle)
			s.ConnState(nc, http.StateClosed)
			if len(c.refused)+c.all > 2 {
				t.Errorf("%s has not left", want.remote)
			}
		}()
	}
	if place, welcome := PlaceOf(context.Background()); place != Dropped || welcome {
		t.Errorf("no connection: %v, %v", place, welcome)
	}
}

// addressed is a fake with addresses.
type addressed struct {
	fake
	remote net.Addr
}

func (a *addressed) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
func (a *addressed) RemoteAddr() net.Addr { return a.remote }
