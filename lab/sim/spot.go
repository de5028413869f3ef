package sim

import (
	"slices"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// sample is a running spot check.
type sample struct {
	attempt uint32
	link    int8
	r       segment.Range
	own     int64       // offset up to which the prefix has arrived
	others  segment.Set // bytes that arrived over other links
	differs bool
}

// beginCheck starts the spot check that a request asks for.
func (w *world) beginCheck(a transfer.Action) {
	if a.Prefix > 0 {
		r := segment.Range{Start: a.Range.Start, End: a.Range.Start + a.Prefix}
		n := &sample{attempt: a.Attempt, link: a.Link, r: r, own: r.Start}
		if a.Tail >= 0 {
			n.others.Add(w.tails[a.Tail].Clip(r))
			n.differs = w.spec.Links[a.Tail].Lies != w.spec.Links[a.Link].Lies
		}
		w.samples = append(w.samples, n)
	}
}

// compareTwice starts a spot check that needs no request.
func (w *world) compareTwice(a transfer.Action) {
	w.samples = append(w.samples, &sample{attempt: a.Attempt, link: a.Link, r: a.Range, own: a.Range.End})
}

// compare reports received bytes to the machine and, before any of them are delivered to the client, the results of
// completed spot checks. It does nothing and returns false if no spot check is running. The simulator has no real
// bytes: the bytes of two links differ if one of the links lies.
func (w *world) compare(k *ask, came segment.Range) bool {
	if len(w.samples) == 0 {
		return false
	}
	kept := segment.Range{Start: max(came.Start, k.want), End: min(came.End, w.m.Wanted(k.id))}
	lies := w.spec.Links[k.conn.link].Lies
	for _, s := range w.samples {
		switch r := kept.Clip(s.r); {
		case s.attempt == k.id:
			s.own = max(s.own, min(came.End, s.r.End))
		case k.conn.link != s.link && !r.Empty() && s.others.Add(r) > 0:
			s.differs = s.differs || lies != w.spec.Links[s.link].Lies
		}
	}
	gone := max(w.offset, w.given)
	writing := w.writing
	w.writing = true // nothing is delivered until the results are known
	w.handle(transfer.Event{Kind: transfer.Read, Attempt: k.id, N: came.Len()})
	for _, s := range slices.Clone(w.samples) {
		if s.own == s.r.End && s.others.Overlap(s.r) == s.r.Len() {
			w.samples = slices.DeleteFunc(w.samples, func(o *sample) bool { return o == s })
			w.logf("compared the bytes of %d on link %d: differs %v", s.attempt, s.link, s.differs)
			w.handle(transfer.Event{Kind: transfer.Compared, Attempt: s.attempt, Differs: s.differs, N: gone})
		}
	}
	if w.writing = writing; !w.over && w.err == nil {
		w.write()
	}
	return true
}
