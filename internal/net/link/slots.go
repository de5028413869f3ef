package link

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/tributary-http/tributary/internal/net/conn"
)

// Slots limits how many connections to one host are open over one link at a time, whatever they are used for. It never
// waits: a caller that does not get a slot learns when to try again. Safe for concurrent use.
type Slots struct {
	most int // 0 = no bound

	mu    sync.Mutex
	hosts map[slotKey]*hostSlots
}

// slotKey is the key of a counter.
type slotKey struct{ link, host string }

// hostSlots counts the connections to one host over one link.
type hostSlots struct {
	open  int
	freed chan struct{} // closed when one closes or is idle; nil if nobody waits
}

// NewSlots returns Slots for a number of connections per host and link; 0 means any number.
func NewSlots(most int) *Slots { return &Slots{most: most, hosts: map[slotKey]*hostSlots{}} }

// NoSlotError reports that a host has as many connections over a link as it may have. Nothing was sent, and nobody is
// to blame.
type NoSlotError struct {
	Link, Host string
	Most       int
	Freed      <-chan struct{} // closed when one of the connections has closed or is idle
}

func (e *NoSlotError) Error() string {
	return fmt.Sprintf("%s has %d connections over %s, as many as max_connections_per_host allows", e.Host, e.Most,
		e.Link)
}

// HostOf returns the host of an address ("host:port") in the form that is used for comparing hosts.
func HostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Slot is the right to have one connection. The zero value is that of a host without a limit.
type Slot struct{ release func() }

// Take returns a slot for a connection over the named link to addr ("host:port"). An error is a *NoSlotError.
func (s *Slots) Take(link, addr string) (Slot, error) { return s.take(link, addr, s.most) }

// TakeSpare is like Take, but leaves one slot for others.
func (s *Slots) TakeSpare(link, addr string) (Slot, error) { return s.take(link, addr, s.most-1) }

func (s *Slots) take(link, addr string, most int) (Slot, error) {
	if s.most == 0 {
		return Slot{}, nil
	}
	key := slotKey{link, HostOf(addr)}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[key]
	if h == nil {
		h = &hostSlots{}
		s.hosts[key] = h
	}
	if h.open >= most {
		if h.freed == nil {
			h.freed = make(chan struct{})
		}
		return Slot{}, &NoSlotError{Link: link, Host: key.host, Most: s.most, Freed: h.freed}
	}
	h.open++
	return Slot{sync.OnceFunc(func() { s.release(key, h) })}, nil
}

// TakeFrom is like Take, but others may have idle connections, which drop closes: while there is no slot, it calls one
// function of drop after the other.
func (s *Slots) TakeFrom(link, addr string, drop ...func()) (Slot, error) {
	for {
		slot, err := s.Take(link, addr)
		full, none := errors.AsType[*NoSlotError](err)
		if !none {
			return slot, err
		}
		for _, d := range drop {
			d()
			if slot, err = s.Take(link, addr); err == nil {
				return slot, nil
			}
		}
		select {
		case <-full.Freed: // another connection became idle after its drop
		default:
			return slot, err
		}
	}
}

func (s *Slots) release(key slotKey, h *hostSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.open--; h.open == 0 {
		delete(s.hosts, key)
	}
	h.wake()
}

// Idle reports that an open connection over the named link to addr is not in use: a caller that waits for a slot may
// use or close it.
func (s *Slots) Idle(link, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[slotKey{link, HostOf(addr)}]; h != nil {
		h.wake()
	}
}

// wake makes all waiting callers try again.
func (h *hostSlots) wake() {
	if h.freed != nil {
		close(h.freed)
		h.freed = nil
	}
}

// Release returns the slot. A second call does nothing.
func (s Slot) Release() {
	if s.release != nil {
		s.release()
	}
}

// Hold makes a connection have the slot until it is closed.
func (s Slot) Hold(c *conn.Conn) {
	if s.release != nil {
		c.AfterClose(s.release)
	}
}
