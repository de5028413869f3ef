package direct

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// stale is how long a connection may have been idle before a request that must not be repeated: a NAT that has
// forgotten it would swallow the request. It is about as long as programs keep their own connections.
const stale = 5 * time.Second

// Pinned is a pass-through client with connections of its own. It serves one client whose credentials authenticate its
// connections instead of its requests (RFC 4559 section 6): later requests on such a connection count as that client's.
// Requests that must not be repeated use one, too, as without a proxy: on a connection that another client left behind,
// they might get lost. It sends one request at a time, and stays on the link that it used last while that link is up.
type Pinned struct {
	passThrough *PassThrough
	transports  transports

	mu            sync.Mutex
	last          string    // name of the link; "" = none yet
	used          time.Time // when its last request began
	authenticated bool      // its connections must not be replaced
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
	addr := origin.HostPort(r.URL)
	as, links := p.passThrough.place(flowTo(r.Context(), addr, r.UserAgent()), addr, p.passThrough.orderFor(r))
	p.mu.Lock()
	last, now := p.last, time.Now()
	p.authenticated = p.authenticated || opening.AuthenticatesConnection(r.Header)
	old := !p.authenticated && now.Sub(p.used) > stale
	p.used = now
	p.mu.Unlock()
	if old {
		p.transports.close()
	}
	if i := slices.IndexFunc(links, func(l link.Link) bool { return l.Name == last }); i > 0 {
		l := links[i]
		links = slices.Insert(slices.Delete(links, i, i+1), 0, l)
	}
	resp, l, err := p.transports.do(r, links, as)
	if err != nil {
		as.end()
		return nil, l, err
	}
	as.response(resp)
	p.mu.Lock()
	p.last = l.Name
	p.mu.Unlock()
	return resp, l, nil
}

// Close closes the idle connections.
func (p *Pinned) Close() {
	p.passThrough.mu.Lock()
	delete(p.passThrough.pinned, p)
	p.passThrough.mu.Unlock()
	p.transports.close()
}
