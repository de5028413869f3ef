package engine

import (
	"time"

	"github.com/tributary-http/tributary/internal/opening"
	"github.com/tributary-http/tributary/internal/transfer"
)

// receive stores the bytes of a read as far as they are wanted, and counts them.
func (r *run) receive(e event) {
	p := e.piece
	if wanted := r.m.Wanted(e.Attempt); p.end() > wanted {
		p.hi -= int(min(p.end()-wanted, int64(p.hi-p.lo)))
	}
	if r.scatter != nil {
		r.scatter.add(r, p)
		return
	}
	r.store.add(p, r.given)
}

func (r *run) attemptEnded(e event) {
	if f := e.fetch; f != nil {
		name := r.slot(f.link).name
		r.opening.Ended(name, e.Why)
		r.e.observe(Event{
			Kind: EventAttemptEnded, At: time.Now(), Transfer: r.id, Link: name, Reason: e.Why.String(),
			Took: time.Since(f.asked),
		})
		if e.Why != transfer.Complete && e.Why != transfer.Canceled {
			r.e.cfg.Log.Debug("attempt failed", "transfer", r.id, "link", name, "why", e.Why.String(), "error", e.err)
		}
	}
	delete(r.fetches, e.Attempt)
}

// handle gives an event to the machine and carries out what it answers.
func (r *run) handle(e transfer.Event) time.Time {
	if r.over {
		return time.Time{}
	}
	now := time.Now()
	total, waste := r.m.Received()
	do, next := r.m.Handle(now, e)
	if e.Kind == transfer.Read {
		r.count(now, e, total, waste)
	}
	for _, a := range do {
		r.carryOut(now, a)
	}
	if r.over {
		return time.Time{}
	}
	if r.shrink && r.scatter == nil {
		r.shrink = r.share.Holds(max(r.m.Committed(), r.m.Reorder()))
	}
	r.news = r.news || e.Kind != transfer.Tick
	if now.Sub(r.reported) >= reportEvery {
		r.report(now)
	}
	r.pump()
	return next
}

// count tells observers and the fleet what a read brought.
func (r *run) count(now time.Time, e transfer.Event, total, waste int64) {
	f := r.fetches[e.Attempt]
	if f == nil {
		return
	}
	total2, waste2 := r.m.Received()
	s := r.slot(f.link)
	s.lastByte.Store(r.e.fleet.clock(now))
	s.bytes.Add(total2 - total)
	s.meter.add(r.e.fleet.clock(now), total2-total-(waste2-waste))
	for len(r.brought) <= int(f.link) {
		r.brought = append(r.brought, 0)
	}
	r.brought[f.link] += total2 - total
	s.waste.Add(waste2 - waste)
	r.req.Usage.Add(s.name, total2-total, waste2-waste)
	r.e.observe(Event{Kind: EventReceived, At: now, Transfer: r.id, Link: s.name, Bytes: total2 - total, Waste: waste2 - waste})
}

func (r *run) carryOut(now time.Time, a transfer.Action) {
	switch a.Kind {
	case transfer.Open:
		r.lanes[a.Conn] = newLane(r, a.Conn, a.Link)
	case transfer.Fetch, transfer.FetchAll:
		f := &fetch{id: a.Attempt, conn: a.Conn, link: a.Link, ask: r.ask(a), more: make(chan struct{}, 1), verdict: make(chan opening.Do, 1), asked: now}
		f.credit.Store(a.UpTo)
		r.fetches[a.Attempt] = f
		if r.opening.Version() != nil {
			r.e.observe(Event{Kind: EventDecision, At: now, Transfer: r.id, Link: r.slot(a.Link).name, Reason: a.Reason.String()})
		}
		r.lanes[a.Conn].asks <- f
	case transfer.Credit:
		if f := r.fetches[a.Attempt]; f != nil {
			f.extend(a.UpTo)
		}
	case transfer.CloseConn:
		r.lanes[a.Conn].close()
		r.retire(a.Conn)
	case transfer.Keep:
		r.lanes[a.Conn].release()
		r.retire(a.Conn)
	case transfer.Want:
		if r.scatter != nil {
			return
		}
		r.share = r.e.budget.Join(a.N, func(n int64) { r.mailbox.post(transfer.Event{Kind: transfer.Granted, N: n}) })
	case transfer.Need:
		if r.scatter != nil {
			return
		}
		r.share.Need(a.N)
		r.shrink = true
	case transfer.ReportSilent:
		r.e.fleet.silent(r, a.Link)
	case transfer.ReportAlive:
		r.e.fleet.alive(r, a.Link)
	case transfer.ReportFailed:
		r.e.fleet.failed(r, a.Link, a.Cause)
	case transfer.TakenOver:
		r.e.observe(Event{Kind: EventFailover, At: now, Transfer: r.id, Link: r.slot(a.Link).name, Reason: "silent"})
	case transfer.Done:
		r.finish(nil)
	case transfer.Fail:
		err := r.lastErrs[a.Why]
		if r.opening.Version() != nil && a.Why.Blame() == transfer.Origin {
			err = allRefused(err)
		}
		r.opening.Lost(a.Why, r.head == nil)
		r.finish(failure(err, a.Why, r.slot(a.Link).name))
	}
}

// retire forgets a lane that is ending, and its attempts.
func (r *run) retire(conn uint32) {
	l := r.lanes[conn]
	delete(r.lanes, conn)
	for id, f := range r.fetches {
		if f.conn == conn {
			delete(r.fetches, id)
		}
	}
	r.kept = append(r.kept, l)
}

// pump hands bytes to the writer when it has nothing to do.
func (r *run) pump() {
	if r.scatter != nil {
		r.scatter.pump(r)
		return
	}
	if ready := r.m.Head() + r.m.Ready() - r.given; !r.writing && ready > 0 && r.opening.Version() != nil {
		batch := r.store.take(nil, r.given, min(ready, batchBytes))
		if len(batch) == 0 {
			return
		}
		r.given = batch[len(batch)-1].end()
		r.writing = true
		r.begin()
		r.out <- batch // its one place is free: the writer took the last batch
	}
}

// report tells the fleet how fast each busy link is, and observers how far the transfer is.
func (r *run) report(now time.Time) {
	r.reported, r.news = now, false
	for i := range int8(r.links) {
		rate, rtt, busy := r.m.Link(now, i)
		if busy && rate > 0 && r.opening.Version() != nil {
			r.e.fleet.rate(r, i, rate)
		}
		if rtt > 0 {
			r.slot(i).rtt.Store(int64(rtt))
		}
	}
	if r.opening.Version() != nil {
		size := r.m.Size()
		if size == transfer.Unknown {
			size = -1
		}
		links := make([]LinkBytes, 0, len(r.brought))
		for i, n := range r.brought {
			if n > 0 {
				links = append(links, LinkBytes{r.slot(int8(i)).name, n})
			}
		}
		r.status.Store(&TransferStatus{ID: r.id, Size: size, Head: r.m.Head(), Window: r.m.Reorder(), Held: r.m.Held(), Started: r.began, Links: links})
	}
}

// ask makes the request of an attempt.
func (r *run) ask(a transfer.Action) Ask {
	k := Ask{Target: r.req.Target, Range: a.Range, Want: r.opening.Version()}
	k.Header, k.IfRange = r.opening.Fields()
	if k.Want != nil {
		return k
	}
	if r.req.Interim != nil && len(r.fetches) == 0 { // those of a copy are nobody's (R55)
		k.Interim = r.interim.pass(r.req.Interim)
	}
	if a.Kind == transfer.FetchAll {
		k.Range = r.opening.Own()
	}
	return k
}
