package engine

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// runLink is a link as a run knows it.
type runLink struct {
	state   health.State // for the origin
	network string       // behind the link when it joined
	verdict policy.Verdict
	seen    bool // it was permitted to see the request
}

// newRunLink returns a link that is not permitted yet.
func newRunLink(state health.State, l link.Link) runLink {
	return runLink{state: state, network: networkOf(l), verdict: policy.Verdict{Use: policy.No}}
}

// take records the policy's verdict.
func (m *runLink) take(v policy.Verdict) {
	m.verdict = v
	m.seen = m.seen || v.May()
}

// ask asks the policy which links the request may use now. links are the fleet's.
func (r *run) ask(links []link.Link) policy.Answer {
	q := r.req.Options.Request()
	q.Exposes, q.Began = q.Exposes || r.opening.Exposes(), r.m != nil
	all := make([]policy.Link, len(r.links))
	for i := range r.links {
		m, l := &r.links[i], &links[i]
		all[i] = policy.Link{
			Name:    l.Name,
			Terms:   l.Terms,
			State:   m.state,
			Metric:  l.Metric,
			Refused: r.refused[l.Name],
			Out:     r.m != nil && r.m.Out(int8(i)),
			Seen:    m.seen,
			Carries: m.verdict.May(),
		}
	}
	return policy.For(q, all)
}

// linkConfig returns the known facts about a link.
func (r *run) linkConfig(i int8, l link.Link) transfer.LinkConfig {
	m := &r.links[i]
	return transfer.LinkConfig{
		State:    m.state,
		Metered:  l.Terms.Metered,
		Resort:   m.verdict.Use == policy.Resort,
		Spare:    m.verdict.Use == policy.Spare,
		Optional: m.verdict.Optional,
		Radio:    m.verdict.Radio,
		LastByte: r.link(i).radio.lastByte(),
		Learned:  r.e.lookUp(l, r.origin),
	}
}

// permitted tells the machine which links it may use now. The terms of links change, and so do the consent of the
// client and the links that serve the object.
func (r *run) permitted() time.Time {
	r.asks = false
	verdicts := r.ask(r.e.fleet.links()).Verdicts
	for _, may := range []bool{false, true} { // a link that must not be used is not used while others are permitted
		for i, v := range verdicts {
			m := &r.links[i]
			was := m.verdict
			if v.May() != may {
				continue
			}
			if m.take(v); may == was.May() && (v.Use == policy.Spare) == (was.Use == policy.Spare) {
				continue
			}
			if may {
				r.e.fleet.allow(r, int8(i))
			} else {
				r.e.fleet.forbid(r, int8(i))
			}
			r.handle(transfer.Event{
				Kind: transfer.Permitted, Link: int8(i), Allowed: may, Spare: v.Use == policy.Spare,
			})
		}
	}
	if now := r.helped(); r.opening.Version() != nil && now != r.further { // it was reported
		r.e.runs(0, now-r.further)
		r.further = now
	}
	return r.handle(transfer.Event{Kind: transfer.Tick})
}

// pays reports whether the request may use a link, whatever its state.
func (r *run) pays(l link.Link) bool {
	q := r.req.Options.Request()
	return q.Permits(l.Terms)
}

// helped returns 1 if links that cost money could help the transfer.
func (r *run) helped() int {
	if q := r.req.Options.Request(); q.Unmetered {
		return 0
	}
	return 1
}

// linkState takes the state of a link that the fleet posted, or a link that has appeared.
func (r *run) linkState(e transfer.Event) time.Time {
	if int(e.Link) == len(r.links) { // new links are posted in the order of their numbers
		links := r.e.fleet.links()
		l := links[e.Link]
		r.links = append(r.links, newRunLink(e.State, l))
		m := &r.links[e.Link]
		m.take(r.ask(links).Verdicts[e.Link])
		known := r.linkConfig(e.Link, l)
		if e.New, e.Allowed = &known, m.verdict.May(); e.Allowed {
			r.e.fleet.allow(r, e.Link)
		}
		return r.handle(e)
	}
	r.links[e.Link].state = e.State
	if r.req.Links.MaxLinks > 0 { // before the machine uses one too many
		r.permitted()
	}
	return r.handle(e)
}

// takeMail handles an event that the fleet or the budget posted.
func (r *run) takeMail(e transfer.Event) time.Time {
	switch e.Kind {
	case transfer.LinkState:
		return r.linkState(e)
	case transfer.Permitted:
		return r.permitted()
	case transfer.Granted:
		r.shrink = true
	}
	return r.handle(e)
}
