package engine

import (
	"slices"
	"sync"
)

// LinkUse is the traffic of one link for a request.
type LinkUse struct {
	Link  string
	Bytes int64 // of content received
	Waste int64 // of these, bytes that another link brought too or nobody wanted
}

// Usage records the links and bytes that a request, its repetitions included, used. The zero value is empty, and a nil Usage
// takes no notes. Safe for concurrent use; it is complete when the Body of the answer is closed.
type Usage struct {
	mu     sync.Mutex
	links  []LinkUse
	reason string
}

// Links returns the traffic of each link, in the order of their first bytes.
func (u *Usage) Links() []LinkUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.links)
}

// Reason returns why the answer came over one link, as it is; "" if it was divided or is not there yet.
func (u *Usage) Reason() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reason
}

// SetReason notes why the answer comes over one link.
func (u *Usage) SetReason(reason string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reason = reason
}

// Add counts bytes of content that a link brought.
func (u *Usage) Add(link string, bytes, waste int64) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.links, func(l LinkUse) bool { return l.Link == link })
	if i < 0 {
		i, u.links = len(u.links), append(u.links, LinkUse{Link: link})
	}
	u.links[i].Bytes += bytes
	u.links[i].Waste += waste
}
