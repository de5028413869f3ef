package engine

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

func (r *run) attemptEnded(e event) {
	if f := e.attempt; f != nil {
		name := r.link(f.link).name
		if r.opening.Ended(name, e.Outcome) {
			r.e.refused(r.origin)
		}
		r.e.observe(Event{
			Kind:     EventAttemptEnded,
			At:       time.Now(),
			Transfer: r.id,
			Link:     name,
			Reason:   e.Outcome.String(),
			Took:     time.Since(f.sent),
		})
		if e.Outcome != fault.Complete && e.Outcome != fault.Canceled {
			r.e.cfg.Log.Debug("attempt failed", "transfer", r.id, "link", name, "why", e.Outcome.String(),
				"error", e.err)
		}
	}
	delete(r.attempts, e.Attempt)
}

// handle gives an event to the machine and carries out its result.
func (r *run) handle(e transfer.Event) time.Time {
	if r.over {
		return time.Time{}
	}
	now := time.Now()
	r.shown.news = r.shown.news || e.Kind != transfer.Tick
	return r.follow(now, r.m.Handle(now, e))
}

// read is handle for received bytes.
func (r *run) read(e event) time.Time {
	if r.over {
		e.piece.b.free()
		return time.Time{}
	}
	now := time.Now()
	r.shown.news = true
	res := r.m.Handle(now, e.Event)
	got := res.Received
	var done []*sample
	var gone int64
	if len(r.spots.open) > 0 {
		if done = r.spots.compare(e.Attempt, e.attempt.link, e.piece, got.Keep); done != nil {
			gone = r.delivery.gone()
		}
	}
	if got.Fresh+got.Waste > 0 {
		r.spots.keep(e.attempt.link, e.piece, got)
	}
	r.delivery.keep(e.piece, got.Keep)
	r.count(now, e.Attempt, got)
	return r.follow(now, r.compared(now, res, done, gone))
}

// follow carries out the result of an event, and returns when the machine wants a Tick.
func (r *run) follow(now time.Time, res transfer.Result) time.Time {
	r.asks = r.asks || res.Ask
	r.carryOutAll(now, res)
	if r.over {
		return time.Time{}
	}
	if r.shrink && r.delivery.scatter == nil {
		r.shrink = r.share.Holds(res.Holds)
	}
	if now.Sub(r.shown.at) >= reportEvery {
		r.report(now)
	}
	r.pump(res.Ready)
	return res.Next
}

func (r *run) carryOutAll(now time.Time, res transfer.Result) {
	for _, a := range res.Do {
		r.carryOut(now, a)
	}
}

// count reports the bytes of a read to observers and the fleet.
func (r *run) count(now time.Time, attempt uint32, got transfer.Received) {
	f := r.attempts[attempt]
	if f == nil {
		return
	}
	n := got.Fresh + got.Waste
	s := r.link(f.link)
	s.lastByte.Store(r.e.fleet.clock(now))
	s.lastRun.Store(r)
	s.bytes.Add(n)
	s.meter.add(r.e.fleet.clock(now), got.Fresh)
	for len(r.shown.brought) <= int(f.link) {
		r.shown.brought = append(r.shown.brought, 0)
	}
	r.shown.brought[f.link] += n
	s.waste.Add(got.Waste)
	s.radio.add(now, n)
	r.req.Usage.Add(s.name, n, got.Waste)
	r.req.Usage.Spend(s.name, r.radio(f.link), now, n)
	r.e.observe(Event{
		Kind:     EventReceived,
		At:       now,
		Transfer: r.id,
		Link:     s.name,
		Bytes:    n,
		Waste:    got.Waste,
	})
}

func (r *run) carryOut(now time.Time, a transfer.Action) {
	switch a.Kind {
	case transfer.Open, transfer.OpenApart:
		r.e.fleet.uses(r, a.Link)
		r.takes(len(r.conns) + 1)
		r.conns[a.Conn] = newConnLoop(r, a.Conn, a.Link, a.Kind == transfer.OpenApart)
	case transfer.Fetch, transfer.FetchAll, transfer.FetchAhead:
		f := &attempt{
			ahead:   a.Kind == transfer.FetchAhead,
			id:      a.Attempt,
			conn:    a.Conn,
			link:    a.Link,
			request: r.rangeRequest(a),
			more:    make(chan struct{}, 1),
			verdict: make(chan opening.Do, 1),
			sent:    now,
		}
		f.request.ID = a.Attempt
		f.credit.Store(a.UpTo)
		f.end.Store(math.MaxInt64)
		r.attempts[a.Attempt] = f
		if a.Prefix > 0 {
			r.spots.begin(a)
		}
		if r.opening.Version() != nil {
			r.e.observe(Event{
				Kind:     EventDecision,
				At:       now,
				Transfer: r.id,
				Link:     r.link(a.Link).name,
				Reason:   a.Rule.String(),
			})
		}
		r.conns[a.Conn].requests <- f
	case transfer.Compare:
		r.spots.again(a)
	case transfer.Credit:
		if f := r.attempts[a.Attempt]; f != nil {
			f.extend(a.UpTo)
		}
	case transfer.Cut:
		if f := r.attempts[a.Attempt]; f != nil {
			r.conns[f.conn].cut(f, a.UpTo)
		}
	case transfer.CloseConn:
		r.conns[a.Conn].close()
		r.retire(a.Conn)
	case transfer.Keep:
		r.conns[a.Conn].release()
		r.retire(a.Conn)
	case transfer.Want:
		if r.delivery.scatter != nil {
			return
		}
		r.share = r.e.budget.Join(a.N, r.req.Target.cost(),
			func(n int64) { r.mailbox.post(transfer.Event{Kind: transfer.Granted, N: n}) })
	case transfer.Need:
		if r.delivery.scatter != nil {
			return
		}
		r.share.Need(a.N)
		r.shrink = true
	case transfer.ReportSilent:
		r.e.fleet.silent(r, a.Link, r.connected(a.Link))
	case transfer.ReportAlive:
		r.e.fleet.alive(r, a.Link)
	case transfer.ReportNothingDue:
		r.e.fleet.nothingDue(r, a.Link)
	case transfer.ReportFailed:
		r.e.fleet.failed(r, a.Link, a.Cause)
	case transfer.ReportHedged:
		r.e.observe(Event{
			Kind:     EventHedge,
			At:       now,
			Transfer: r.id,
			Link:     r.link(a.Link).name,
			Reason:   "silent",
		})
	case transfer.ReportDiffers:
		r.differs(now, a.Link)
	case transfer.Forget:
		r.forget(now, a)
	case transfer.Done:
		r.finish(nil)
	case transfer.Fail:
		r.sound = a.UpTo
		err := r.lastErrs[a.Outcome]
		if r.opening.Version() != nil && a.Outcome.Blame() == fault.BlameOrigin && a.UpTo == transfer.Unknown {
			err = allRefused(err)
		}
		r.opening.Lost(a.Outcome, r.pending == nil)
		r.finish(failure(err, a.Outcome, r.link(a.Link).name))
	}
}

// connected reports whether the run has a connection over a link.
func (r *run) connected(link int8) bool {
	for _, l := range r.conns {
		if l.link == link && l.connected() {
			return true
		}
	}
	return false
}

// retire forgets a connection loop that is ending, and its attempts. Only those that have not ended yet are kept: a
// long transfer may use up many connections, each with its buffers.
func (r *run) retire(conn uint32) {
	l := r.conns[conn]
	delete(r.conns, conn)
	for id, f := range r.attempts {
		if f.conn == conn {
			delete(r.attempts, id)
		}
	}
	r.kept = append(slices.DeleteFunc(r.kept, (*connLoop).ended), l)
	r.takes(len(r.conns))
}

// takes tells the budget what the transfer takes in addition to its grant with so many connections.
func (r *run) takes(conns int) {
	if r.share != nil {
		r.share.Costs(r.req.Target.cost() * int64(max(conns, connsOfTransfer)) / connsOfTransfer)
	}
}

// pump hands bytes to the writer when it has nothing to do. Bytes before offset ready have arrived.
func (r *run) pump(ready int64) {
	if next := r.delivery.batch(ready); next.pieces != nil {
		r.begin()
		r.out <- next // its one place is free: the writer took the last batch
	}
}

// report gives the fleet the rate of each busy link, and observers the state of the transfer, which it returns.
func (r *run) report(now time.Time) transfer.State {
	r.shown.at, r.shown.news = now, false
	s := r.m.State(now)
	joined := r.opening.Version() != nil
	for i, l := range s.Links {
		if l.Busy && l.Rate > 0 && joined {
			name, all := r.e.fleet.speed(r, int8(i), health.Speed{Rate: l.Rate, Gain: l.Gain - r.shown.gain(i)})
			r.shown.gains[i] = l.Gain
			if r.e.cfg.Goodput != nil {
				r.e.cfg.Goodput(name, all)
			}
		}
		if l.RTT > 0 {
			r.link(int8(i)).rtt.Store(int64(l.RTT))
		}
	}
	if !joined {
		return s
	}
	r.contend(now, s)
	size := s.Size
	if size == transfer.Unknown {
		size = -1
	}
	spared := r.spared(s)
	links := make([]LinkBytes, 0, len(r.shown.brought))
	for i, n := range r.shown.brought {
		if n > 0 {
			links = append(links, LinkBytes{r.link(int8(i)).name, n})
		}
	}
	r.shown.status.Store(&TransferStatus{
		ID:      r.id,
		Host:    r.req.Target.Host,
		Name:    r.req.Target.name(),
		Size:    size,
		Offset:  s.Offset,
		Window:  s.Window,
		Held:    s.Held,
		Started: r.began,
		Links:   links,
		LeftOut: spared,
		Limited: r.limited(s),
	})
	return s
}

// sample gives the machine the state of the connections' paths.
func (r *run) sample(next time.Time) time.Time {
	now, every := time.Now(), transfer.SampleEvery
	if r.e.cfg.MostConns > 1 {
		every = transfer.SampleFirst
	}
	if now.Sub(r.sampled) < every || r.opening.Version() == nil {
		return next
	}
	r.sampled = now
	for _, id := range slices.Sorted(maps.Keys(r.conns)) {
		l := r.conns[id]
		if l == nil { // given up meanwhile
			continue
		}
		if now.Sub(l.born) > time.Second && now.Sub(l.sampled) < transfer.SampleEvery {
			continue
		}
		l.sampled = now
		if s, ok := l.sample(); ok {
			next = r.handle(transfer.Event{Kind: transfer.Sampled, Conn: id, Path: s})
		}
	}
	return next
}

// contend leaves out a link that adds nothing to the goodput of the others. It does so only while this is the only
// transfer, since the effect of another one on the links looks much the same.
func (r *run) contend(now time.Time, s transfer.State) {
	if !r.e.fleet.alone() {
		r.stopContending()
		return
	}
	r.traffic = r.traffic[:0]
	for _, l := range s.Links {
		r.traffic = append(r.traffic, health.Traffic{Got: l.Got, Usable: l.Usable, Metered: l.Metered})
	}
	if v, ok := r.contention.Observe(now, r.traffic, s.Stood+r.behind); ok {
		r.e.fleet.judged(r, v)
	}
}

// stopContending takes back the link that was left out.
func (r *run) stopContending() {
	if v, ok := r.contention.Stop(); ok {
		r.e.fleet.judged(r, v)
	}
}

// gain returns a link's gain as last reported.
func (s *shown) gain(link int) float64 {
	for len(s.gains) <= link {
		s.gains = append(s.gains, 0)
	}
	return s.gains[link]
}

// rangeRequest returns the request of an attempt.
func (r *run) rangeRequest(a transfer.Action) RangeRequest {
	k := RangeRequest{Target: r.req.Target, Range: a.Range, Want: r.opening.Version()}
	k.Header, k.IfRange = r.opening.Fields()
	if k.Want != nil {
		return k
	}
	if r.req.Interim != nil && len(r.attempts) == 0 { // those of a copy are dropped (R55)
		k.Interim = r.interim.pass(r.req.Interim)
	}
	if a.Kind == transfer.FetchAll {
		k.Range = r.opening.Own()
	}
	return k
}
