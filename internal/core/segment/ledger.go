package segment

// Ledger tracks the bytes of one requested range [start, end): each is free, requested, or received.
//
// Invariants, checked by Check:
//  1. Every offset of [Offset, end) is received, free, or covered by a running attempt (the caller says which are
//     running).
//  2. No offset is both free and received.
//  3. Held() <= the reorder window if attempts read no further than Limit.
type Ledger struct {
	offset, end int64
	window      int64
	got         Set // received, at or beyond offset
	free        Set // neither received nor requested
	hedged      Set // requested a second time: never requested a third time while both attempts run
}

// NewLedger returns the ledger of range w with every byte free. reorder is the reorder window in bytes.
func NewLedger(w Range, reorder int64) *Ledger {
	l := &Ledger{offset: w.Start, end: w.End, window: reorder}
	l.free.Add(w)
	return l
}

// Offset returns the next offset to be delivered in order.
func (l *Ledger) Offset() int64 { return l.offset }

// End returns the end of the requested range.
func (l *Ledger) End() int64 { return l.end }

// Resize sets the end once the size of the object is known; added bytes become free.
func (l *Ledger) Resize(end int64) {
	if end > l.end {
		l.free.Add(Range{Start: l.end, End: end})
	} else {
		l.free.Remove(Range{Start: end, End: l.end})
		l.got.Remove(Range{Start: end, End: l.end})
	}
	l.end = end
}

// Window returns the reorder window in bytes.
func (l *Ledger) Window() int64 { return l.window }

// SetWindow changes the reorder window. Bytes held beyond a smaller window are kept.
func (l *Ledger) SetWindow(n int64) { l.window = n }

// Limit returns the first offset that no attempt may read yet.
func (l *Ledger) Limit() int64 {
	return l.offset + max(0, min(l.window, l.end-l.offset)) // offset + window may overflow an int64
}

// Free returns the ranges that were not requested, in ascending order. The slice is valid until the next change.
func (l *Ledger) Free() []Range { return l.free.Ranges() }

// Held returns the number of bytes received and not delivered.
func (l *Ledger) Held() int64 { return l.got.Len() }

// Last returns the offset after the last byte received, or the next offset if none is held.
func (l *Ledger) Last() int64 {
	if r := l.got.Ranges(); len(r) > 0 {
		return r[len(r)-1].End
	}
	return l.offset
}

// Ready returns how many bytes at the next offset can be delivered now.
func (l *Ledger) Ready() int64 {
	if r := l.got.Ranges(); len(r) > 0 && r[0].Start == l.offset {
		return r[0].Len()
	}
	return 0
}

// Complete reports whether every byte was received.
func (l *Ledger) Complete() bool { return l.offset+l.Ready() == l.end }

// Take marks r as requested.
func (l *Ledger) Take(r Range) { l.free.Remove(r) }

// Receive records received bytes and returns how many of them are first copies.
func (l *Ledger) Receive(r Range) int64 {
	r = r.Clip(Range{Start: l.offset, End: l.end})
	l.free.Remove(r)
	l.hedged.Remove(r)
	return l.got.Add(r)
}

// Deliver advances the next offset by n bytes, which must be Ready.
func (l *Ledger) Deliver(n int64) {
	if n < 0 || n > l.Ready() {
		panic("segment: delivered bytes that were not received")
	}
	l.got.Remove(Range{Start: l.offset, End: l.offset + n})
	l.offset += n
	l.hedged.Remove(Range{Start: 0, End: l.offset})
	l.free.Remove(Range{Start: 0, End: l.offset}) // bytes that Restart freed may have been received before
}

// Release gives back a range that an attempt will not fetch: the bytes of r that are neither received nor in covered,
// the ranges that other attempts still fetch, become free.
func (l *Ledger) Release(r Range, covered []Range) {
	r = r.Clip(Range{Start: l.offset, End: l.end})
	if r.Empty() {
		return
	}
	l.free.Add(r)
	for _, g := range l.got.Ranges() {
		l.free.Remove(g.Clip(r))
	}
	for _, c := range covered {
		l.free.Remove(c.Clip(r))
	}
	l.hedged.Remove(r)
}

// Forget gives back received bytes: the bytes of r at or beyond Offset are treated as if they had not arrived. It
// returns the number of these bytes.
func (l *Ledger) Forget(r Range, covered []Range) int64 {
	n := l.got.Remove(r.Clip(Range{Start: l.offset, End: l.end}))
	l.Release(r, covered)
	return n
}

// Restart gives back all of r, including received bytes, like the restart continuation of Skjolden 2019 section 8.2.4:
// they are fetched twice, and the second copies are waste. Invariant 2 does not hold from then on.
func (l *Ledger) Restart(r Range, covered []Range) {
	r = r.Clip(Range{Start: l.offset, End: l.end})
	if r.Empty() {
		return
	}
	l.free.Add(r)
	for _, c := range covered {
		l.free.Remove(c.Clip(r))
	}
}

// Hedge marks r as requested a second time.
func (l *Ledger) Hedge(r Range) { l.hedged.Add(r) }

// Hedged reports whether any byte of r was requested by two attempts.
func (l *Ledger) Hedged(r Range) bool { return l.hedged.Overlap(r) > 0 }

// Hedgeable returns the first part of r that was neither received nor requested twice.
func (l *Ledger) Hedgeable(r Range) Range {
	r = r.Clip(Range{Start: l.offset, End: l.end})
	for {
		g := l.got.Gap(r)
		if g.Empty() {
			return g
		}
		if h := l.hedged.Gap(g); !h.Empty() {
			return h
		}
		r.Start = g.End
	}
}

// Missing returns the first part of r that was not received.
func (l *Ledger) Missing(r Range) Range { return l.got.Gap(r.Clip(Range{Start: l.offset, End: l.end})) }

// Check returns the first offset of [Offset, end) that is neither received, free nor in covered, and whether there is
// one; a finished transfer relies on this invariant (R106).
func (l *Ledger) Check(covered []Range) (int64, bool) {
	all := Set{}
	for _, r := range l.got.Ranges() {
		all.Add(r)
	}
	for _, r := range l.free.Ranges() {
		if l.got.Overlap(r) > 0 {
			return r.Start, false
		}
		all.Add(r)
	}
	for _, r := range covered {
		all.Add(r)
	}
	g := all.Gap(Range{Start: l.offset, End: l.end})
	return g.Start, g.Empty()
}
