package sim

import (
	"time"

	"github.com/tributary-http/tributary/internal/estimate"
	"github.com/tributary-http/tributary/internal/transfer"
)

// Beside is what another program loads over a link while the transfer runs, by one connection: answers of some bytes, each
// requested when the one before it is complete, as a browser asks for what a page names.
type Beside struct {
	Link    int8
	At      time.Duration
	Trips   int // round trips of the handshakes before the first request
	Answers []int64
	Think   time.Duration // from an answer to the next request
}

// beside is one of them under way.
type beside struct {
	Beside
	w        *world
	l        *simLink
	wnd      window
	inFlight int64
	left     int64 // of the answer, to be sent
	missing  int64 // of the answer, on the client's side
	latest   time.Duration
	done     func(took time.Duration)
}

// smallPacket is the size of a handshake's packet in bytes.
const smallPacket = 100

// begin starts it. done is told how long it took.
func (w *world) begin(s Beside, done func(took time.Duration)) {
	l := w.links[s.Link]
	b := &beside{Beside: s, w: w, l: l, wnd: newWindow(l.spec.Reno), done: done}
	w.after(s.At, func() { b.handshake(s.Trips) })
}

func (b *beside) handshake(trips int) {
	if trips == 0 {
		b.ask()
		return
	}
	b.w.after(b.l.spec.RTT/2, func() {
		left, _ := b.l.send(b.w.now, smallPacket)
		b.w.after(left-b.w.now+b.l.spec.RTT/2, func() { b.count(smallPacket); b.handshake(trips - 1) })
	})
}

// count takes bytes into what the client's interface receives for others.
func (b *beside) count(n int64) {
	packets := (n + segmentSize - 1) / segmentSize
	b.l.others.Count(b.w.at(b.w.now), estimate.Counters{Packets: packets, Bytes: n}, estimate.Counters{})
}

// crowded tells the machine what comes over the links for others, as the engine does.
func (w *world) crowded() {
	for i, l := range w.links {
		if n := l.others.PerSecond(w.at(w.now)); n != l.crowd {
			l.crowd = n
			w.handle(transfer.Event{Kind: transfer.Crowded, Link: int8(i), N: n})
		}
	}
	w.after(10*time.Millisecond, w.crowded)
}

// ask sends the next request.
func (b *beside) ask() {
	if len(b.Answers) == 0 {
		b.done(b.w.now - b.At)
		return
	}
	n := b.Answers[0]
	b.Answers = b.Answers[1:]
	b.missing = n
	b.w.after(b.l.spec.RTT/2, func() { b.left = n; b.send() })
}

// send puts as much on the link as the congestion window lets it.
func (b *beside) send() {
	for b.left > 0 {
		n := min(b.l.step(b.w.now), b.left, 4*segmentSize)
		if b.inFlight > 0 && float64(b.inFlight+n) > b.wnd.size {
			return
		}
		b.left -= n
		b.inFlight += n
		at, full := b.l.send(b.w.now, n)
		if full {
			at += b.l.spec.RTT // it is sent again
			b.wnd.lost(b.w.now, b.l.spec.RTT+b.l.spec.queue())
		}
		b.latest = max(b.latest, at+b.l.spec.RTT/2)
		b.w.after(b.latest-b.w.now, func() { b.arrive(n) })
	}
}

func (b *beside) arrive(n int64) {
	b.count(n)
	b.w.after(b.l.spec.RTT/2, func() {
		b.inFlight -= n
		b.wnd.acked(b.w.now, b.l.spec.RTT, n)
		b.send()
	})
	if b.missing -= n; b.missing == 0 {
		b.w.after(b.Think, b.ask)
	}
}
