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

// apps describes which apps may use metered links through the proxy.
type apps struct {
	Metered string  `json:"metered"` // one of the above
	UIDs    []int64 `json:"uids"`    // user IDs for metersChosen
}

// UnknownApp is the user ID of an app that the system does not identify.
const UnknownApp int64 = -1

// Meters reports whether the app that has a connection may use metered links. whose returns the user ID of the app, and
// is called only if the result depends on it.
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

// Owner asks the app for the owner of a connection on this machine: it returns the user ID of the app whose socket has
// the address remote and is connected to local, UnknownApp if that cannot be determined.
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

// plain returns an address as the system writes it: an IPv4 address in IPv6 becomes IPv4.
func plain(a netip.AddrPort) string { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String() }

// ask sends a question and waits for its answer. Each type of question has its own limit, and questions take turns in
// the queue, so that many of one type do not hold up another type.
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

// drop ends a question. It returns the channel for the answer, nil if the question has already ended.
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
