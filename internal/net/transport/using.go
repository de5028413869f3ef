package transport

import (
	"slices"
	"sync"

	"github.com/tributary-http/tributary/internal/net/link"
)

// using publishes the links in use to goroutines that wait for changes.
type using struct {
	mu      sync.Mutex
	current used
	changed chan struct{} // closed by the next change; nil if nothing waits
}

// used are the names of interfaces: links, and VPNs that links go around.
type used struct {
	links, around []string
}

// set sets the links in use.
func (u *using) set(links []link.Link) {
	var next used
	for _, l := range links {
		if l.Via != "" {
			continue // not an interface
		}
		next.links = append(next.links, l.Name)
		if l.Beneath != "" && !slices.Contains(next.around, l.Beneath) {
			next.around = append(next.around, l.Beneath)
		}
	}
	next.links = append(next.links, next.around...)
	slices.Sort(next.links)
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Equal(u.current.links, next.links) && slices.Equal(u.current.around, next.around) {
		return
	}
	u.current = next
	if u.changed != nil {
		close(u.changed)
		u.changed = nil
	}
}

// InUse returns the names of the interfaces in use (links, and VPNs that links go around), those of the VPNs among
// them, and a channel that is closed when they change.
func (t *Transport) InUse() (links, around []string, changed <-chan struct{}) {
	now, changed := t.using.now()
	return now.links, now.around, changed
}

// now returns the links in use and a channel that is closed when they change.
func (u *using) now() (used, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.changed == nil {
		u.changed = make(chan struct{})
	}
	return u.current, u.changed
}
