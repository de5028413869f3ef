package transport

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/tributary-http/tributary/internal/link"
)

// inward remembers which names lead to this machine, or to a network that only this machine reaches.
type inward struct {
	mu    sync.Mutex
	leads map[string]bool
	kept  map[string]bool // names that must not lead there
}

// maxInward bounds the number of names that are remembered.
const maxInward = 1000

// Inward reports whether a name led to this machine, or to a network that only this machine reaches, when it was dialed.
func (t *Transport) Inward(host string) bool {
	t.inward.mu.Lock()
	defer t.inward.mu.Unlock()
	return t.inward.leads[plainName(host)]
}

// KeepOut decides whether a name may lead to this machine, or to a network that only this machine reaches. It matters only if
// Config.Allow contains these: a server on the internet must not redirect there, although the user may go anywhere.
func (t *Transport) KeepOut(host string, keep bool) {
	t.inward.mu.Lock()
	defer t.inward.mu.Unlock()
	add(&t.inward.kept, plainName(host), keep)
}

func add(to *map[string]bool, name string, value bool) {
	if *to == nil || len(*to) >= maxInward {
		*to = map[string]bool{}
	}
	(*to)[name] = value
}

// check decides about a dial, see [link.Destinations.Check].
func (t *Transport) check(l link.Link, name string, to netip.AddrPort) (link.Link, error) {
	over, err := t.reach.Check(l, name, to)
	if err != nil || name == "" || !t.reach.Inward(l, to.Addr()) {
		return over, err
	}
	t.inward.mu.Lock()
	defer t.inward.mu.Unlock()
	if name = plainName(name); t.inward.kept[name] {
		return over, link.ErrRebound
	}
	add(&t.inward.leads, name, true)
	return over, nil
}

func plainName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
