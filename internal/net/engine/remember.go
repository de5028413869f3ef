package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// Finding adds a result of a GET to a record.
type Finding func(*estimate.Record)

// maxFindings is how many findings wait to be taken; the oldest are dropped first.
const maxFindings = 1024

// Findings returns the results of GETs since the last call, at most 1024.
func (e *Engine) Findings() []Finding {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.findings
	e.findings = nil
	return all
}

// SetRecord replaces the record of earlier processes. r then belongs to the engine. Findings that were not taken yet
// are added to it.
func (e *Engine) SetRecord(r *estimate.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, add := range e.findings {
		add(r)
	}
	e.record = r
}

// add records a finding. The lock is held.
func (e *Engine) add(f Finding) {
	f(e.record)
	e.findings = append(e.findings, f)
	if n := len(e.findings); n > maxFindings {
		e.findings = e.findings[n-maxFindings:]
	}
}

// networkOf names the network behind a link in history and record.
func networkOf(l link.Link) string { return cmp.Or(l.Network, l.Name) }

// linkNotes are the findings of a transfer about its origin over a network.
type linkNotes struct {
	network   string
	entry     estimate.Entry
	sustained float64 // see estimate.Rate
}

// notes returns the findings of the run about its origin over each link, except links that now lead into another
// network.
func (r *run) notes(s transfer.State) (all []linkNotes) {
	now := r.e.fleet.links()
	for i, l := range s.Links {
		if l.Got > 0 && l.Learned.Rate > 0 && networkOf(now[i]) == r.links[i].network {
			all = append(all, linkNotes{r.links[i].network, l.Learned, l.Sustained})
		}
	}
	return all
}

// lookUp returns the known facts about an origin over a link: its limits from the record, which knows their age, and
// its rate from the last minutes, or else from the record.
func (e *Engine) lookUp(l link.Link, o estimate.Origin) estimate.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	known := e.record.Link(now, networkOf(l), o)
	if lately := e.history.Link(now, networkOf(l), o); lately.Rate > 0 {
		known.Rate, known.Peak, known.RTT = lately.Rate, lately.Peak, cmp.Or(lately.RTT, known.RTT)
		known.Each = lately.Each
	}
	return known
}

// Remembered returns the goodput of earlier divided downloads over the network behind a link, from any origin, in bytes
// per second; 0 if it is unknown.
func (e *Engine) Remembered(l link.Link) float64 { return e.lookUp(l, "").Rate }

// recall returns the memory of an origin and one of its objects, and the links over which it refused objects that it
// served over another one, by name.
func (e *Engine) recall(o estimate.Origin, req *Request,
	links []link.Link,
) (m opening.Memory, refused map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, p := time.Now(), estimate.PathOf(req.Target.Path)
	v, known := e.history.Origin(now, o)
	m = opening.Memory{
		Small:   known && !v.Large,
		Whole:   e.history.Whole(now, o, p) || e.record.Whole(now, o, p),
		Size:    cmp.Or(req.Size, e.history.Size(now, o, p)),
		Sure:    req.Size > 0,
		Refuses: e.history.Refuses(now, o),
	}
	m.Small = m.Small && m.Size <= e.cfg.Threshold
	refused = map[string]bool{}
	for _, l := range links {
		lied := e.cfg.Lied != nil && req.Target.Scheme == "https" && e.cfg.Lied(l.Name, req.Target.Addr)
		if lied || e.history.Excluded(now, networkOf(l), o) || e.record.Excluded(now, networkOf(l), o) {
			refused[l.Name] = true
		}
	}
	return m, refused
}

// remember records the findings of a GET about its origin and the links to it, except links that now lead into another
// network.
func (e *Engine) remember(r *run, n opening.Notes, links []linkNotes) {
	o, all := r.origin, e.fleet.links()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if was, ok := e.history.Origin(now, o); ok && was.Large {
		n.Large = true
	}
	e.history.SetOrigin(now, o, estimate.Visit{Large: n.Large})
	for _, l := range links {
		e.history.SetLink(now, l.network, o, l.entry)
		e.add(func(r *estimate.Record) { r.SetLink(now, l.network, o, l.entry, l.sustained) })
	}
	if n.Whole {
		p := estimate.PathOf(r.req.Target.Path)
		e.history.SetWhole(now, o, p)
		e.add(func(r *estimate.Record) { r.SetWhole(now, o, p) })
	}
	for i, m := range r.links {
		if l, network := all[i], m.network; slices.Contains(n.Excluded, l.Name) && networkOf(l) == network {
			e.history.SetExcluded(now, network, o)
			e.add(func(r *estimate.Record) { r.SetExcluded(now, network, o) })
		}
	}
}

// refused records at once that an origin refused a later request for an object that it served: the next GET may start
// with the client's last byte, before this one is remembered.
func (e *Engine) refused(o estimate.Origin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history.SetRefuses(time.Now(), o)
}
