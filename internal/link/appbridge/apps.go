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

// ask sends a question and waits for its answer. Each type of question has its own limit, and they take turns in the queue: many of one
// type hold up none of another.
func (h *Bridge) ask(ctx context.Context, q outMessage) (inMessage, error) {
	if ctx.Err() != nil {
		return inMessage{}, context.Cause(ctx)
	}
	answer := make(chan inMessage, 1)
	h.mu.Lock()
	h.lastID++
	q.ID = h.lastID
	full := h.open[q.Type] >= asked
	if !full {
		h.questions[q.ID] = question{q.Type, answer}
		h.open[q.Type]++
	}
	h.mu.Unlock()
	if full {
		return inMessage{}, fmt.Errorf("the app has not answered %d questions of type %s", asked, q.Type)
	}
	defer h.drop(q.ID)
	line, err := q.line()
	if err != nil {
		return inMessage{}, err
	}
	for out := h.out; ; {
		select {
		case out <- line:
			out = nil
		case m := <-answer:
			return m, nil
		case <-ctx.Done():
			return inMessage{}, context.Cause(ctx)
		case <-h.gone:
			return inMessage{}, ErrGone
		}
	}
}

// drop ends a question. It returns where its answer goes; nil = it has ended.
func (h *Bridge) drop(id uint64) chan<- inMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	q, ok := h.questions[id]
	if !ok {
		return nil
	}
	delete(h.questions, id)
	h.open[q.about]--
	return q.answer
}
