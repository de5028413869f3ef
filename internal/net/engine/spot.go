package engine

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

var errDiffers = errors.New("two links delivered different bytes with the same headers")

// spots are the spot checks of a transfer: it asks a link for some bytes that others deliver, and compares both copies.
type spots struct {
	open  []*sample
	tails []tail // by link
}

// mostOpen is how many checks may be under way, of all links.
const mostOpen = 16

// tail holds the last bytes of a link that a later check may need.
type tail struct {
	b   []byte
	end int64 // their end in the object
}

// sample holds the bytes of a check.
type sample struct {
	attempt uint32 // attempt that fetches one copy as its prefix, or the name of a check that needs no request
	link    int8
	r       segment.Range
	first   []byte      // copy that arrived first, of each byte of r
	own     int64       // offset up to which the prefix has arrived
	others  segment.Set // part that has arrived over other links
	differs bool
}

// begin starts the check that a request asks for. The machine may have given up earlier checks: the oldest are
// forgotten.
func (s *spots) begin(a transfer.Action) {
	if len(s.open) == mostOpen {
		s.open = slices.Delete(s.open, 0, 1)
	}
	r := segment.Range{Start: a.Range.Start, End: a.Range.Start + a.Prefix}
	n := &sample{
		attempt: a.Attempt,
		link:    a.Link,
		r:       r,
		first:   make([]byte, r.Len()),
		own:     r.Start,
	}
	if a.Tail >= 0 && int(a.Tail) < len(s.tails) {
		t := s.tails[a.Tail]
		known := segment.Range{Start: t.end - int64(len(t.b)), End: t.end}.Clip(r)
		if !known.Empty() {
			copy(n.first[known.Start-r.Start:known.End-r.Start], t.b[known.Start-t.end+int64(len(t.b)):])
			n.others.Add(known)
		}
	}
	s.open = append(s.open, n)
}

// again starts a check that needs no request: another link will deliver once more what this one delivered last.
func (s *spots) again(a transfer.Action) {
	a.Prefix, a.Tail = a.Range.Len(), a.Link
	s.begin(a)
	n := s.open[len(s.open)-1]
	n.own, n.others = n.r.End, segment.Set{}
}

// keep copies the bytes of a piece that later checks may need.
func (s *spots) keep(link int8, p piece, got transfer.Received) {
	for len(s.tails) <= int(link) {
		s.tails = append(s.tails, tail{})
	}
	t := &s.tails[link]
	came := p.part(got.Keep.Clip(got.Tail))
	before := min(len(t.b), int(got.Tail.Len())-len(came))
	t.b = append(t.b[:copy(t.b, t.b[len(t.b)-before:])], came...)
	t.end = got.Tail.End
}

// compare adds the bytes of a piece, whose range keep is wanted, to the checks and returns those that are finished.
func (s *spots) compare(attempt uint32, link int8, p piece, keep segment.Range) (done []*sample) {
	for _, c := range s.open {
		switch {
		case c.attempt == attempt:
			c.takeOwn(p)
		case c.link != link:
			c.takeOther(p, keep)
		}
		if c.differs || c.own == c.r.End && c.others.Overlap(c.r) == c.r.Len() {
			done = append(done, c)
		}
	}
	for _, c := range done {
		s.open = slices.DeleteFunc(s.open, func(o *sample) bool { return o == c })
	}
	return done
}

// takeOwn adds bytes of the prefix: those that other links have delivered are compared, the rest is kept.
func (c *sample) takeOwn(p piece) {
	r := segment.Range{Start: p.off, End: p.end()}.Clip(c.r)
	for !r.Empty() {
		gap := c.others.Gap(r)
		c.check(p, segment.Range{Start: r.Start, End: gap.Start})
		copy(c.first[gap.Start-c.r.Start:], p.part(gap))
		r.Start, c.own = gap.End, gap.End
	}
}

// takeOther adds bytes that another link delivered, each once: those that the prefix has are compared, the rest is
// kept.
func (c *sample) takeOther(p piece, keep segment.Range) {
	for r := keep.Clip(c.r); !r.Empty(); {
		gap := c.others.Gap(r)
		known := segment.Range{Start: gap.Start, End: max(gap.Start, min(gap.End, c.own))}
		c.check(p, known)
		rest := segment.Range{Start: known.End, End: gap.End}
		copy(c.first[rest.Start-c.r.Start:], p.part(rest))
		c.others.Add(gap)
		r.Start = gap.End
	}
}

// check compares part of a piece with the copy that arrived first.
func (c *sample) check(p piece, r segment.Range) {
	c.differs = c.differs || !bytes.Equal(c.first[r.Start-c.r.Start:r.End-c.r.Start], p.part(r))
}

// part returns the bytes of a range that p holds.
func (p piece) part(r segment.Range) []byte {
	if r.Empty() {
		return nil
	}
	return p.b.data[p.lo+int(r.Start-p.off) : p.lo+int(r.End-p.off)]
}

// compared reports finished checks to the machine before any byte that depends on them is handed to the writer. Bytes
// before offset gone were already handed to it.
func (r *run) compared(now time.Time, res transfer.Result, done []*sample, gone int64) transfer.Result {
	for _, c := range done {
		r.carryOutAll(now, res)
		if r.over {
			return transfer.Result{}
		}
		res = r.m.Handle(now, transfer.Event{Kind: transfer.Compared, Attempt: c.attempt, Differs: c.differs, N: gone})
	}
	return res
}

// differs records that a link left the transfer, since its bytes differ from those of the others.
func (r *run) differs(now time.Time, link int8) {
	name := r.link(link).name
	r.lastErrs[fault.Differs] = &AttemptError{Op: "check", Link: name, Outcome: fault.Differs, Err: errDiffers}
	r.opening.Ended(name, fault.Differs)
	r.e.observe(Event{Kind: EventSpotCheckFailed, At: now, Transfer: r.id, Link: name})
	r.e.cfg.Log.Warn("this link's bytes differ from those of the others; the download stops using it",
		"transfer", r.id, "link", name)
}

// forget drops bytes that the writer must not deliver.
func (r *run) forget(now time.Time, a transfer.Action) {
	r.delivery.forget(a.Range)
	s := r.link(a.Link)
	s.waste.Add(a.N)
	r.req.Usage.Add(s.name, 0, a.N)
	r.e.observe(Event{
		Kind:     EventReceived,
		At:       now,
		Transfer: r.id,
		Link:     s.name,
		Waste:    a.N,
	})
}
