package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
)

// LinkUse is the traffic of one link for a request.
type LinkUse struct {
	Link  string
	Bytes int64 // of content received
	Waste int64 // of these, bytes that another link also delivered or that nobody wanted
	// energy that its radio uses for them by the model, with the tail, as if nothing else used it; 0 = unknown
	Joules float64
	Spared string // why the policy or the request's goal does without the link, "" if it does not
}

// Usage records the links and bytes that a request used, including its repetitions. The zero value is empty, and a nil
// Usage records nothing. Safe for concurrent use; it is complete when the Body of the response is closed.
type Usage struct {
	mu     sync.Mutex
	links  []LinkUse
	radios []energy.Meter // by link
	reason string
}

// Links returns the traffic of each link, in the order of their first bytes.
func (u *Usage) Links() []LinkUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Clone(u.links)
	for i := range all {
		all[i].Joules = u.radios[i].Settled().Radio()
	}
	return all
}

// Reason returns why the response arrived over one link; "" if it was divided or has not started.
func (u *Usage) Reason() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reason
}

// SetReason records why the response arrives over one link.
func (u *Usage) SetReason(reason string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reason = reason
}

// Add counts bytes of content that a link delivered.
func (u *Usage) Add(link string, bytes, waste int64) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	i := u.find(link)
	u.links[i].Bytes += bytes
	u.links[i].Waste += waste
}

// Spend counts the energy of a link's radio for bytes that arrived over it; nil = the radio is unknown.
func (u *Usage) Spend(link string, radio *energy.Radio, now time.Time, bytes int64) {
	if u == nil || radio == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	m := &u.radios[u.find(link)]
	m.Radio = *radio
	m.Add(now, 0, bytes)
}

// Spare records why the request does not use a link; "" if it does.
func (u *Usage) Spare(link, reason string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := slices.IndexFunc(u.links, func(l LinkUse) bool { return l.Link == link }); i >= 0 || reason != "" {
		u.links[u.find(link)].Spared = reason
	}
}

// find returns the index of a link, which it adds if it is missing. The lock is held.
func (u *Usage) find(link string) int {
	i := slices.IndexFunc(u.links, func(l LinkUse) bool { return l.Link == link })
	if i < 0 {
		i, u.links, u.radios = len(u.links), append(u.links, LinkUse{Link: link}), append(u.radios, energy.Meter{})
	}
	return i
}
