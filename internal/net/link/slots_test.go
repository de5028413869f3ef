package link

import (
	"errors"
	"net"
	"testing"

	"github.com/tributary-http/tributary/internal/net/conn"
)

func TestSlots(t *testing.T) {
	s := NewSlots(2)
	take := func(link, addr string) Slot {
		t.Helper()
		slot, err := s.Take(link, addr)
		if err != nil {
			t.Fatalf("%s over %s: %v", addr, link, err)
		}
		return slot
	}
	full := func(link, addr string) *NoSlotError {
		t.Helper()
		_, err := s.Take(link, addr)
		e, ok := errors.AsType[*NoSlotError](err)
		if !ok || e.Link != link || e.Most != 2 {
			t.Fatalf("%s over %s: %v", addr, link, err)
		}
		return e
	}
	freed := func(e *NoSlotError) bool {
		select {
		case <-e.Freed:
			return true
		default:
			return false
		}
	}
	a, b := take("wifi", "o.test:80"), take("wifi", "O.TEST.:443")
	first, second := full("wifi", "o.test:80"), full("wifi", "o.test:443")
	if first.Host != "o.test" {
		t.Errorf("host %s", first.Host)
	}
	take("lte", "o.test:80")
	take("wifi", "other.test:80")
	take("wifi", "[2001:db8::1]:80")
	if freed(first) || freed(second) {
		t.Error("none has closed")
	}
	a.Release()
	a.Release()
	if !freed(first) || !freed(second) {
		t.Error("who waits is not told")
	}
	c := take("wifi", "o.test:80")
	third := full("wifi", "o.test:80") // the second Release did nothing
	b.Release()
	c.Release()
	if !freed(third) {
		t.Error("who waits is not told")
	}
	d, e := take("wifi", "o.test:80"), take("wifi", "o.test:80")
	fourth := full("wifi", "o.test:80")
	s.Idle("lte", "o.test:80")
	s.Idle("wifi", "nobody.test:80")
	if freed(fourth) {
		t.Error("told of others' connections")
	}
	if s.Idle("wifi", "O.test:443"); !freed(fourth) {
		t.Error("who waits is not told of an idle connection")
	}
	full("wifi", "o.test:80") // it is still open
	d.Release()
	e.Release()
	take("wifi", "o.test:80").Release()
	if n := len(s.hosts); n != 3 {
		t.Errorf("%d hosts are remembered, with connections to 3", n)
	}
	Slot{}.Release()
}

// TestSlotsHold: a connection that is closed, once or twice, releases its slot.
func TestSlotsHold(t *testing.T) {
	ln, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, _ := pair(t, ln)
	pipe, far := net.Pipe()
	defer far.Close()
	s := NewSlots(1)
	for _, c := range []net.Conn{near, pipe} {
		slot, err := s.Take("wifi", "o.test:80")
		if err != nil {
			t.Fatal(err)
		}
		held := conn.Of(c)
		slot.Hold(held)
		if _, ok := c.(*net.TCPConn); ok && held.TCP() == nil {
			t.Errorf("%T cannot be spliced", c)
		}
		if _, err := s.Take("wifi", "o.test:80"); err == nil {
			t.Fatalf("%T: a second one", c)
		}
		held.Close()
		held.Close()
		again, err := s.Take("wifi", "o.test:80")
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		if _, err := s.Take("wifi", "o.test:80"); err == nil {
			t.Errorf("%T: a second Close gave another slot", c)
		}
		again.Release()
	}
	none, err := NewSlots(0).Take("wifi", "o.test:80")
	if err != nil {
		t.Errorf("without a bound: %v", err)
	}
	none.Hold(conn.Of(near))
}

// TestTakeFrom: a connection that becomes idle while others are dropped is not missed.
func TestTakeFrom(t *testing.T) {
	s := NewSlots(1)
	used, err := s.Take("wifi", "o.test:80")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	drop := func() {
		switch calls++; calls {
		case 1: // it becomes idle right after
			s.Idle("wifi", "o.test:80")
		case 2:
			used.Release()
		}
	}
	got, err := s.TakeFrom("wifi", "o.test:80", drop)
	if err != nil || calls != 2 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	calls = 2 // nothing is idle
	var full *NoSlotError
	if _, err := s.TakeFrom("wifi", "o.test:80", drop); !errors.As(err, &full) || calls != 3 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	got.Release()
	select {
	case <-full.Freed:
	default:
		t.Error("who waits is not told")
	}
}
