package appbridge

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
)

// The values of apps.Metered. Others count as metersNone.
const (
	metersNone   = "none"
	metersChosen = "chosen"
	metersAll    = "all"
)

// apps says which apps may use metered links by way of the proxy.
type apps struct {
	Metered string  `json:"metered"` // one of the above
	UIDs    []int64 `json:"uids"`    // of metersChosen
}

// UnknownApp is the user ID of an app that the system does not identify.
const UnknownApp int64 = -1

// Meters reports whether the app that has a connection may use metered links. whose is called only if that depends on the app.
func (h *Bridge) Meters(whose func() int64) bool {
	a := h.told.Load().apps
	switch a.Metered {
	case metersAll:
		return true
	case metersChosen:
		uid := whose()
		return uid != UnknownApp && slices.Contains(a.UIDs, uid)
	}
	return false
}

// Pays reports whether any app may use metered links.
func (h *Bridge) Pays() bool {
	a := h.told.Load().apps
	return a.Metered == metersAll || a.Metered == metersChosen && len(a.UIDs) > 0
}

// Owner asks the app who has a connection on this machine: the user ID of the app whose socket has the address remote and is connected
// to local; UnknownApp if that cannot be told.
func (h *Bridge) Owner(ctx context.Context, local, remote netip.AddrPort) int64 {
	m, err := h.ask(ctx, outMessage{Type: "owner", Local: plain(remote), Remote: plain(local)})
	switch {
	case err != nil:
		h.log.Debug("whose a connection is stays unknown", "error", err)
		return UnknownApp
	case m.UID == nil || *m.UID < 0:
		return UnknownApp
	}
	return *m.UID
}

// plain returns an address as the system knows it: IPv4 in IPv6 is IPv4.
func plain(a netip.AddrPort) string { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String() }

// ask sends a question and waits for its answer.
func (h *Bridge) ask(ctx context.Context, q outMessage) (inMessage, error) {
	answer := make(chan inMessage, 1)
	h.mu.Lock()
	h.lastID++
	q.ID = h.lastID
	full := len(h.questions) >= asked
	if !full {
		h.questions[q.ID] = answer
	}
	h.mu.Unlock()
	if full {
		return inMessage{}, fmt.Errorf("the app has not answered %d questions", asked)
	}
	defer func() {
		h.mu.Lock()
		delete(h.questions, q.ID)
		h.mu.Unlock()
	}()
	if !h.say(q) {
		return inMessage{}, errUnread
	}
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		return inMessage{}, context.Cause(ctx)
	case <-h.gone:
		return inMessage{}, ErrGone
	}
}
