package sim

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// Beside is the download of another program over a link while the transfer runs, on one connection. It is a series of
// answers, each requested when the one before is complete, as a browser requests the resources that a page refers to.
type Beside struct {
	Link    int8
	At      time.Duration
	Trips   int // number of round trips for handshakes before the first request
	Answers []int64
	Think   time.Duration // time from an answer to the next request
}

// beside is a running Beside.
type beside struct {
	Beside
	w        *world
	l        *simLink
	wnd      window
	inFlight int64
	left     int64 // bytes of the answer that the server still has to send
	missing  int64 // bytes of the answer that the client has not received
	latest   time.Duration
	done     func(took time.Duration)
}

// smallPacket is the size of a handshake packet in bytes.
const smallPacket = 100

// begin starts s, and calls done with its duration at the end.
func (w *world) begin(s Beside, done func(took time.Duration)) {
	l := w.links[s.Link]
	b := &beside{
		Beside: s,
		w:      w,
		l:      l,
		wnd:    newWindow(l.spec.Reno),
		done:   done,
	}
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

// count adds bytes to the other traffic that the client's interface receives.
func (b *beside) count(n int64) {
	packets := (n + segmentSize - 1) / segmentSize
	b.l.others.Count(b.w.at(b.w.now), estimate.Counters{Packets: packets, Bytes: n}, estimate.Counters{})
}

// crossTraffic reports the other traffic on the links to the machine, as the engine does.
func (w *world) crossTraffic() {
	for i, l := range w.links {
		if n := l.others.PerSecond(w.at(w.now)); n != l.cross {
			l.cross = n
			w.handle(transfer.Event{Kind: transfer.CrossTraffic, Link: int8(i), N: n})
		}
	}
	w.after(10*time.Millisecond, w.crossTraffic)
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

// send puts as much on the link as the congestion window allows.
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
			at += b.l.spec.RTT // the bytes are sent again
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
