package sim

import (
	"math"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

type simConn struct {
	id         uint32
	link       int8
	open       bool
	asks       []*ask // at the server, being answered in order
	wnd        window
	inFlight   int64         // bytes sent, not acknowledged
	latest     time.Duration // arrival of the last step: bytes arrive in order
	unread     int64         // bytes arrived, not read by the client
	apart      bool          // it carries a reserve
	unreadMost int64         // bytes that fit into its buffer
	rto        time.Duration
	stalled    bool   // the connection waits for a retransmission
	lost       []lost // the steps to be sent again
	refused    bool   // one connection too many: each request gets 503
	answers    int
	closing    bool
	sent       bucket
	waits      bool  // for its bucket, or that of its link or of the object
	holes      int64 // packets that arrived behind a lost one
}

type ask struct {
	id       uint32
	conn     *simConn
	r        segment.Range
	want     int64         // start of the wanted part of r, behind the prefix of a spot check
	answer   segment.Range // r as stated in the response head
	whole    bool
	sent     int64 // offset that the server will send next
	end      int64 // offset up to which the client wants it
	cuts     int   // number of cuts that the server does not know yet
	done     bool  // the client has all of it; the server may still send
	empty    bool  // only a head will arrive
	arrived  int64
	cursor   int64
	credit   int64
	hasHead  bool
	breakAt  int64
	closes   bool
	left     bool  // the request was sent to the server
	received bool  // the request reached the server
	refuse   bool  // the server refuses the request and sends no bytes
	refused  bool  // the refusal has arrived
	busy     bool  // a 503 has arrived
	drained  int64 // bytes read and discarded
}

func (w *world) linkEvent(i int8, e LinkEvent) {
	l := w.links[i]
	switch e.What {
	case Blackhole:
		l.alive = false
	case Restore:
		l.alive = true
	case Gone:
		l.alive = false
		w.board.Present(w.at(w.now), i, false)
	case Back:
		l.alive = true
		w.board.Present(w.at(w.now), i, true)
	case SetRate:
		l.spec.Rate = e.Rate
	}
	w.logf("link %d: event %d", i, e.What)
	w.changes()
}

// open opens a connection. It takes over a kept connection or that of a probe, if there is one; otherwise it makes two
// handshakes, within 5 s in total.
func (w *world) open(id uint32, link int8, apart bool) {
	l := w.links[link]
	c := &simConn{
		id:         id,
		link:       link,
		wnd:        newWindow(l.spec.Reno),
		rto:        firstRTO,
		apart:      apart,
		unreadMost: receiveBuf,
	}
	if apart {
		c.unreadMost = step
	}
	w.conns[id] = c
	waits := func() bool { return w.conns[id] == c && !c.open }
	opened := func() {
		if !waits() {
			return
		}
		c.open = true
		if l.conns++; l.spec.Conns > 0 && l.conns > l.spec.Conns {
			c.refused = true
		}
		w.res.Most[link] = max(w.res.Most[link], l.conns)
		w.handle(transfer.Event{Kind: transfer.Opened, Conn: id, RTT: l.spec.RTT, Multiplexed: l.spec.H2 && !apart})
		w.serve(c)
		w.after(transfer.SampleEvery, func() { w.sample(c) })
	}
	if !apart && int(link) < len(w.spec.kept) && w.spec.kept[link].at > 0 && l.alive {
		if k := w.spec.kept[link]; w.now-k.at < firstRTO { // after a pause the window restarts (RFC 5681 section 4.1)
			c.wnd = k.wnd
		}
		w.spec.kept[link] = kept{}
		w.after(0, opened)
		return
	}
	if !apart && l.warm > w.now && l.alive {
		l.warm = 0
		w.after(0, opened)
		return
	}
	for _, began := range []time.Duration{0, secondSYN + l.spec.RTT} {
		w.handshake(l, began, dialTime, opened)
	}
	w.after(dialTime, func() {
		if waits() {
			delete(w.conns, id)
			w.handle(transfer.Event{Kind: transfer.OpenFailed, Conn: id, Outcome: fault.Unreachable})
		}
	})
}

// sample reports to the machine what the kernel would know about a connection and, over HTTP/2, what a PING would
// measure. Over HTTP/1.1 the kernel's estimate of the delay is too rough for planning: with the true delay, mphttp
// would be 12 % faster here than in the lab.
func (w *world) sample(c *simConn) {
	if w.conns[c.id] != c {
		return
	}
	l := w.links[c.link]
	path := transfer.PathSample{RTT: l.spec.RTT + max(0, l.busy-w.now), Least: l.spec.RTT, Holes: c.holes}
	path.Data = path.RTT
	if l.spec.H2 {
		path.Delay = path.RTT
	}
	w.handle(transfer.Event{Kind: transfer.Sampled, Conn: c.id, Path: path})
	w.after(transfer.SampleEvery, func() { w.sample(c) })
}

// handshake starts a handshake after a time. It sends the SYN again after 1 s, 2 s and so on until it gives up, and
// calls done for each answered SYN.
func (w *world) handshake(l *simLink, after, until time.Duration, done func()) {
	for wait := synRTO; after < until; after, wait = after+wait, 2*wait {
		w.after(after, func() {
			if !l.alive {
				return
			}
			w.after(l.spec.RTT, func() {
				if l.alive {
					done()
				}
			})
		})
	}
}

// probe makes a handshake whose connection the next open takes over. The answer waits in the queue before the link.
func (w *world) probe(p health.Probe) {
	l, over := w.links[p.Link], false
	answer := func(a health.Answer) {
		if over {
			return
		}
		over = true
		if a == health.Answered {
			l.warm = w.now + warmTime
		}
		w.board.Probed(w.at(w.now), p, a)
		w.changes()
	}
	w.handshake(l, 0, p.For, func() {
		w.after(l.busy-w.now, func() {
			if l.alive {
				answer(health.Answered)
			}
		})
	})
	w.after(p.For, func() { answer(health.NoAnswer) })
}

func (w *world) ask(a transfer.Action) {
	c := w.conns[a.Conn]
	k := &ask{
		id:      a.Attempt,
		conn:    c,
		r:       a.Range,
		want:    a.Range.Start + a.Prefix,
		whole:   a.Kind == transfer.FetchAll,
		credit:  a.UpTo,
		breakAt: -1,
	}
	f := w.spec.Faults
	k.r.End = min(k.r.End, w.spec.Size)
	k.sent, k.arrived, k.cursor = k.r.Start, k.r.Start, k.r.Start
	if f.Reset > 0 && w.rng.Float64() < f.Reset {
		k.breakAt = k.r.Start + w.rng.Int64N(max(k.r.Len(), 1))
	}
	if f.Short > 0 && k.r.Len() > 2 && w.rng.Float64() < f.Short {
		k.r.End = k.r.Start + 1 + w.rng.Int64N(k.r.Len()-1)
	}
	k.answer, k.end = k.r, k.r.End
	if w.asks[a.Attempt] = k; a.Kind == transfer.FetchAhead {
		w.ahead = append(w.ahead, k)
	}
	c.asks = append(c.asks, k)
	w.serve(c)
}

// cut ends an answer at an offset. The server learns of the cut half a round trip later, from a smaller window; bytes
// beyond the offset that it sent by then arrive anyway and are discarded.
func (w *world) cut(k *ask, upTo int64) {
	c := k.conn
	if w.conns[c.id] != c || upTo >= k.end {
		return
	}
	c.unread -= max(0, min(k.arrived, k.end)-max(upTo, k.cursor))
	k.end = max(upTo, k.cursor)
	k.cuts++
	w.after(w.links[c.link].spec.RTT/2, func() {
		if w.conns[c.id] != c {
			return
		}
		k.cuts--
		k.empty = max(k.sent, k.end) == k.answer.Start
		k.r.End = min(k.r.End, max(k.sent, k.end))
		if k.empty {
			w.after(w.links[c.link].spec.RTT/2, func() { w.readOn(k) })
		}
		w.readNext(c)
		w.send(c)
	})
	w.after(0, func() { w.readOn(k) })
}

// readNext continues with the answer behind one that the client and the server have finished.
func (w *world) readNext(c *simConn) {
	for len(c.asks) > 0 && c.asks[0].done && c.asks[0].cuts == 0 {
		c.asks = c.asks[1:]
	}
	if len(c.asks) > 0 {
		w.readOn(c.asks[0])
	}
}

// serve sends the requests that have not been sent yet to the server.
func (w *world) serve(c *simConn) {
	if !c.open {
		return
	}
	for _, k := range c.asks {
		if k.left {
			continue
		}
		k.left = true
		w.after(w.links[c.link].spec.RTT/2, func() {
			if w.conns[c.id] != c {
				return
			}
			f := w.spec.Faults
			if c.closing || f.NoPipeline && len(c.asks) > 0 && c.asks[0] != k {
				c.closing = true // never answered: the server closes after the current answer
				return
			}
			k.received = true
			if c.refused {
				w.after(w.links[c.link].spec.RTT/2, func() { k.busy = true; w.readOn(k) })
				return
			}
			w.res.asked++
			late := f.MostAsked > 0 && w.res.asked > f.MostAsked || f.Expires > 0 && w.now > f.Expires
			if late || f.RefuseOn > 0 && c.link == f.RefuseOn && k.r.Start > 0 {
				k.refuse = true
				w.after(w.links[c.link].spec.RTT/2, func() { k.refused = true; w.readOn(k) })
				return
			}
			w.send(c)
		})
	}
}

// send puts the next step of a connection on its link.
func (w *world) send(c *simConn) {
	if c.stalled || w.conns[c.id] != c || len(c.asks) == 0 {
		return
	}
	k := c.asks[0]
	for _, o := range c.asks { // answers follow one another without a gap
		k = o
		if k.sent < k.r.End {
			break
		}
	}
	if !k.received || k.refuse || k.sent >= k.r.End {
		return
	}
	l := w.links[c.link]
	n := min(l.step(w.now), k.r.End-k.sent)
	if float64(c.inFlight+n) > max(c.wnd.size, float64(min(n, segmentSize))) && c.inFlight > 0 ||
		c.unread+c.inFlight+n > c.unreadMost {
		return
	}
	if w.limited(c, n) {
		return
	}
	c.inFlight += n
	k.sent += n
	left, full := l.send(w.now, n)
	repair := time.Duration(0)
	switch p := l.spec.Loss; {
	case full:
		repair = l.spec.RTT
		c.holes++
		c.wnd.lost(w.now, l.spec.RTT+l.spec.queue())
	case p > 0 && w.rng.Float64() > math.Pow(1-p, float64(n)/segmentSize):
		repair = l.spec.RTT
		c.holes++
		w.after(left-w.now+l.spec.RTT, func() { c.wnd.lost(w.now, l.spec.RTT) }) // later bytes reveal it
	}
	at := left + repair + l.spec.RTT/2
	if l.spec.Jitter > 0 {
		at += time.Duration(w.rng.Int64N(int64(l.spec.Jitter)))
	}
	c.latest = max(c.latest, at)
	w.after(c.latest-w.now, func() { w.arrive(c, k, n) })
	w.send(c)
}

// limited reports whether the origin must not send n bytes on a connection yet; it will then send them as soon as it
// may.
func (w *world) limited(c *simConn, n int64) bool {
	if c.waits {
		return true
	}
	o, l := w.spec.Limits, w.links[c.link]
	wait := c.sent.wait(w.now, o.Conn, o.Burst)
	shared := max(l.sent.wait(w.now, o.Link, o.Burst+step), w.sent.wait(w.now, o.Object, o.Burst+step))
	if shared > wait {
		wait = shared + time.Duration(w.rng.Int64N(int64(shared))) // else the same connection would always be the first
	}
	if wait > 0 {
		c.waits = true
		w.after(wait, func() { c.waits = false; w.send(c) })
		return true
	}
	for _, b := range [...]*bucket{&c.sent, &l.sent, &w.sent} {
		b.used += float64(n)
	}
	return false
}

// lost is a step that must be sent again.
type lost struct {
	ask *ask
	n   int64
}

// arrive delivers a step to the client. If the link is dead, the step is sent again after a timeout.
func (w *world) arrive(c *simConn, k *ask, n int64) {
	if w.conns[c.id] != c {
		return
	}
	l := w.links[c.link]
	if !l.alive || c.stalled { // bytes behind a hole wait for it
		if !c.stalled {
			c.stalled = true
			c.wnd.timeout()
			w.after(c.rto, func() { w.retry(c) })
		}
		c.lost = append(c.lost, lost{k, n})
		return
	}
	c.unread += max(0, min(n, k.end-k.arrived)) // the rest is discarded
	k.arrived += n
	w.after(l.spec.RTT/2, func() {
		c.inFlight -= n
		c.wnd.acked(w.now, l.spec.RTT, n)
		w.send(c)
	})
	w.readOn(k)
	w.send(c)
}

// retry resends the bytes that a dead link lost: first one step and, a round trip after it has arrived, the others.
func (w *world) retry(c *simConn) {
	if w.conns[c.id] != c {
		return
	}
	l := w.links[c.link]
	if !l.alive {
		c.rto = min(2*c.rto, 60*time.Second)
		w.after(c.rto, func() { w.retry(c) })
		return
	}
	all := c.lost
	c.lost, c.stalled, c.rto = nil, false, firstRTO
	for _, s := range all[1:] {
		left, _ := l.send(w.now, s.n)
		c.latest = max(c.latest, left+l.spec.RTT)
		w.after(c.latest-w.now, func() { w.arrive(c, s.ask, s.n) })
	}
	w.arrive(c, all[0].ask, all[0].n)
}

// readOn lets the client read received bytes, in order and within its credit.
func (w *world) readOn(k *ask) {
	c := k.conn
	if w.conns[c.id] != c || len(c.asks) == 0 || c.asks[0] != k || k.done {
		return
	}
	if w.m.Progress().Size == transfer.Unknown && slices.Contains(w.ahead, k) {
		return
	}
	if k.refused || k.busy {
		outcome := fault.Unwanted
		if k.busy {
			outcome = fault.Busy
		}
		if k.busy && w.links[c.link].spec.H2 { // the connection goes on
			k.done, c.asks = true, c.asks[1:]
			w.handle(transfer.Event{Kind: transfer.Ended, Attempt: k.id, Outcome: outcome, Stays: true})
			w.readNext(c)
			return
		}
		w.end(k, outcome)
		return
	}
	if !k.hasHead {
		if k.arrived == k.r.Start && !k.empty {
			return
		}
		k.hasHead = true
		c.answers++
		closes := w.spec.Faults.CloseAfter > 0 && c.answers >= w.spec.Faults.CloseAfter
		k.closes = closes
		w.handle(transfer.Event{
			Kind:    transfer.HeadReceived,
			Attempt: k.id,
			Range:   k.answer,
			Size:    w.spec.Size,
			Close:   closes && !w.spec.Faults.Unannounced,
		})
		if w.conns[c.id] != c {
			return
		}
	}
	if k.breakAt >= 0 && k.arrived > k.breakAt {
		if n := min(k.breakAt, k.credit, k.end) - k.cursor; n > 0 {
			w.read(k, n)
		}
		w.end(k, fault.Reset)
		return
	}
	if n := min(k.arrived, k.credit, k.end) - k.cursor; n > 0 {
		w.read(k, n)
		w.send(c)
	}
	if k.cursor < min(k.r.End, k.end) || w.conns[c.id] != c || len(c.asks) == 0 || c.asks[0] != k || k.done {
		return // a credit that resulted from the read may already have ended it
	}
	if k.done = true; k.cuts == 0 {
		c.asks = c.asks[1:]
	}
	if k.closes && !w.spec.Faults.Unannounced {
		w.close(c.id)
	}
	w.handle(transfer.Event{Kind: transfer.Ended, Attempt: k.id, Outcome: fault.Complete})
	if k.closes && w.conns[c.id] == c {
		if len(c.asks) > 0 {
			w.end(c.asks[0], fault.Unanswered)
			return
		}
		w.close(c.id)
		w.handle(transfer.Event{Kind: transfer.ConnClosed, Conn: c.id})
		return
	}
	if c.closing && w.conns[c.id] == c {
		if len(c.asks) > 0 {
			w.end(c.asks[0], fault.Unanswered)
		}
		return
	}
	if w.conns[c.id] == c {
		w.readNext(c)
	}
}

func (w *world) read(k *ask, n int64) {
	k.conn.unread -= n
	w.audit.read(k, n)
	if w.spec.read != nil {
		w.spec.read(w.now, k.conn.link, n)
	}
	r := segment.Range{Start: k.cursor, End: k.cursor + n}
	k.cursor += n
	w.res.Bytes[k.conn.link] += n
	w.packet(k.conn.link, n/ackEvery, n)
	w.res.Last[k.conn.link] = w.now
	w.res.Received.add(w.now-w.spec.began, k.conn.link, n)
	if !w.compare(k, r) {
		w.handle(transfer.Event{Kind: transfer.Read, Attempt: k.id, N: n})
	}
}

// end breaks the connection of k with an outcome.
func (w *world) end(k *ask, outcome fault.Outcome) {
	if w.conns[k.conn.id] != k.conn {
		return
	}
	w.close(k.conn.id)
	w.handle(transfer.Event{Kind: transfer.Ended, Attempt: k.id, Outcome: outcome})
}

// close removes a connection, here and at the origin.
func (w *world) close(id uint32) {
	if c := w.conns[id]; c != nil {
		if c.open {
			w.links[c.link].conns--
		}
		delete(w.conns, id)
	}
}
