package transport

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/tributary-http/tributary/internal/net/link"
)

// inward remembers which names lead to this machine, or to a network that only this machine reaches.
type inward struct {
	mu    sync.Mutex
	leads map[string]bool
	kept  map[string]int // names that must not lead there, and how many downloads want that
}

// maxInward bounds the number of names in leads.
const maxInward = 1000

// Inward reports whether a name led to this machine, or to a network that only this machine reaches, when it was
// dialed.
func (t *Transport) Inward(host string) bool {
	t.inward.mu.Lock()
	defer t.inward.mu.Unlock()
	return t.inward.leads[plainName(host)]
}

// KeepOut keeps a name from leading to this machine, or to a network that only this machine reaches, until release is
// called, once. It matters only if Config.Allow contains these: a server on the internet must not redirect there,
// although the user may go anywhere. Meanwhile nobody else may go there by that name, either.
func (t *Transport) KeepOut(host string) (release func()) {
	name := plainName(host)
	t.inward.mu.Lock()
	defer t.inward.mu.Unlock()
	if t.inward.kept == nil {
		t.inward.kept = map[string]int{}
	}
	t.inward.kept[name]++
	return func() {
		t.inward.mu.Lock()
		defer t.inward.mu.Unlock()
		if t.inward.kept[name]--; t.inward.kept[name] == 0 {
			delete(t.inward.kept, name)
		}
	}
}

// check decides about a dial, see [link.Destinations.Look].
func (t *Transport) check(l link.Link, name string, to netip.AddrPort) (link.Link, error) {
	over, inward, err := t.reach.Look(l, name, to)
	if err != nil || name == "" || !inward {
		return over, err
	}
	t.inward.mu.Lock()
	defer t.inward.mu.Unlock()
	if name = plainName(name); t.inward.kept[name] > 0 {
		return over, link.ErrRebound
	}
	if t.inward.leads == nil || len(t.inward.leads) >= maxInward {
		t.inward.leads = map[string]bool{}
	}
	t.inward.leads[name] = true
	return over, nil
}

func plainName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
