package relay

import (
	"maps"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// ServerStatus is the state of a Server.
type ServerStatus struct {
	Clients  []ClientUse // by key; without clients that have not connected since the start
	Held     int64       // bytes of Memory that the streams of all sessions hold
	Memory   int64
	Turned   int64 // connections that neither became a lane nor enrolled a client: strangers, and those over a limit
	Draining bool
}

// ClientUse is what one client uses of a server.
type ClientUse struct {
	Key             KeyID
	Sessions, Lanes int
	Flows           int              // open tunnels
	Bytes           int64            // bytes carried by its tunnels since the start, both directions
	Refused         map[string]int64 // refused tunnels, by reason: see reasons
}

// reasons are the names of the causes for which a server refuses a stream.
var reasons = map[uint64]string{
	lanes.CauseRefused:  "destination",
	lanes.CauseNotFound: "name",
	lanes.CauseFailed:   "unreachable",
	lanes.CauseFlows:    "flows",
	lanes.CauseMonth:    "month",
	lanes.CauseDraining: "draining",
}

// Status returns the state of a server. It does not name any destination.
func (s *Server) Status() ServerStatus {
	st := ServerStatus{
		Held: s.memory.used.Load(), Memory: s.memory.limit.Load(), Turned: s.turned.Load(), Draining: s.closing.Load(),
	}
	s.mu.Lock()
	accounts := maps.Clone(s.accounts)
	s.mu.Unlock()
	uses := map[KeyID]*ClientUse{}
	use := func(k KeyID) *ClientUse {
		if uses[k] == nil {
			uses[k] = &ClientUse{Key: k, Refused: map[string]int64{}}
		}
		return uses[k]
	}
	for _, v := range s.all() {
		u := use(v.key)
		u.Sessions++
		u.Lanes += v.count()
	}
	for k, a := range accounts {
		a.report(use(k))
	}
	for _, u := range uses {
		st.Clients = append(st.Clients, *u)
	}
	slices.SortFunc(st.Clients, func(a, b ClientUse) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return st
}

// report reports what was used since the start.
func (a *account) report(u *ClientUse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u.Flows, u.Bytes = a.flows, a.bytes
	for cause, n := range a.refused {
		u.Refused[reasons[cause]] = n
	}
}
