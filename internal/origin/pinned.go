package origin

import (
	"net/http"
	"slices"
	"sync"

	"github.com/tributary-http/tributary/internal/link"
)

// Pinned is a pass-through client with connections of its own. It serves one client whose credentials authenticate its connections
// instead of its requests (RFC 4559 section 6): later requests on such a connection count as that client's. It sends one request at
// a time, and stays on the link that it used last while that link is up.
type Pinned struct {
	passThrough *PassThrough
	transports  transports

	mu   sync.Mutex
	last string // name of the link; "" = none yet
}

// Pin returns a client that shares no connection with p or with another Pinned. Close ends it.
func (p *PassThrough) Pin() *Pinned {
	own := &Pinned{passThrough: p}
	own.transports.passThrough = p
	p.mu.Lock()
	p.pinned[own] = struct{}{}
	p.mu.Unlock()
	return own
}

// Do is as PassThrough.Do.
func (p *Pinned) Do(r *http.Request) (*http.Response, link.Link, error) {
	links := p.passThrough.Greetings.order(p.passThrough.orderFor(r), HostPort(r.URL))
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	if i := slices.IndexFunc(links, func(l link.Link) bool { return l.Name == last }); i > 0 {
		l := links[i]
		links = slices.Insert(slices.Delete(links, i, i+1), 0, l)
	}
	resp, l, err := p.transports.do(r, links, nil)
	if err == nil {
		p.mu.Lock()
		p.last = l.Name
		p.mu.Unlock()
	}
	return resp, l, err
}

// Close closes the idle connections.
func (p *Pinned) Close() {
	p.passThrough.mu.Lock()
	delete(p.passThrough.pinned, p)
	p.passThrough.mu.Unlock()
	p.transports.close()
}
