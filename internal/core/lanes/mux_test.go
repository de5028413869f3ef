package lanes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// pipe is one direction of an emulated lane: the bytes written leave at the link's rate and arrive a delay later.
type pipe struct {
	rate     float64 // bytes per second
	delay    time.Duration
	free     time.Time // when the link has sent everything
	flying   []flying
	flown    uint64
	rest     []byte // part of a frame
	inFlight int
}

type flying struct {
	at   time.Time
	data []byte
}

func (p *pipe) path() Path {
	return Path{
		RTT: 2 * p.delay, MinRTT: 2 * p.delay, CWnd: int(2*p.rate*p.delay.Seconds()) + 20<<10, InFlight: p.inFlight,
		DeliveryRate: p.rate, AppLimited: p.inFlight < 10<<10, Progress: p.flown,
	}
}

func (p *pipe) write(now time.Time, b []byte) {
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(seconds(float64(len(b)) / p.rate))
	p.flying = append(p.flying, flying{p.free.Add(p.delay), bytes.Clone(b)})
	p.inFlight += len(b)
}

// world is two ends with lanes between them.
type world struct {
	testing.TB
	now     time.Time
	ends    [2]*Mux // client, server
	lanes   map[uint32]*[2]pipe
	wait    map[uint32]*[2]time.Time // when to ask again
	dark    map[uint32]bool          // nothing arrives
	next    uint32
	buf     [32 << 10]byte
	carried int // bytes of data that arrived, copies included
}

func newWorld(t testing.TB, budget int64) *world {
	return &world{
		TB: t, now: start, lanes: map[uint32]*[2]pipe{}, wait: map[uint32]*[2]time.Time{}, dark: map[uint32]bool{},
		ends: [2]*Mux{New(Config{Client: true, Budget: budget, MaxStreams: 100}), New(Config{Budget: budget, MaxStreams: 100})},
	}
}

func (w *world) add(rate float64, delay time.Duration) uint32 {
	w.next++
	id := w.next
	w.lanes[id] = &[2]pipe{{rate: rate, delay: delay}, {rate: rate, delay: delay}}
	w.wait[id] = &[2]time.Time{}
	for _, m := range w.ends {
		m.AddLane(w.now, id)
	}
	return id
}

func (w *world) kill(id uint32) {
	delete(w.lanes, id)
	for _, m := range w.ends {
		m.RemoveLane(w.now, id)
	}
}

// step lets a millisecond pass.
func (w *world) step() {
	w.now = w.now.Add(time.Millisecond)
	for id := uint32(1); id <= w.next; id++ {
		l := w.lanes[id]
		if l == nil {
			continue
		}
		for end, m := range w.ends {
			w.deliver(id, &l[1-end], m)
		}
		for end, m := range w.ends {
			for range 50 {
				m.Observe(w.now, id, l[end].path())
				b, _ := m.Next(w.now, id, nil)
				if len(b) == 0 {
					break
				}
				l[end].write(w.now, b)
			}
		}
	}
	for _, m := range w.ends {
		m.Tick(w.now)
	}
}

func (w *world) deliver(id uint32, p *pipe, to *Mux) {
	for len(p.flying) > 0 && !p.flying[0].at.After(w.now) && !w.dark[id] {
		data := p.flying[0].data
		p.flying = p.flying[1:]
		p.inFlight -= len(data)
		p.flown += uint64(len(data))
		for p.rest = append(p.rest, data...); ; {
			f, n, err := Decode(p.rest)
			if err != nil {
				w.Fatal(err)
			}
			if n == 0 {
				break
			}
			p.rest = p.rest[n:]
			f.Data = bytes.Clone(f.Data)
			w.carried += len(f.Data)
			if err := to.Receive(w.now, id, f); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// content is the byte sequence of a stream.
func content(id uint32, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(id), byte(id >> 8)}).Read(b)
	return b
}

// checkedReader reads a stream and checks it.
type checkedReader struct {
	got   int
	sum   uint32
	ended bool
}

func (r *checkedReader) read(w *world, end int, id uint32) {
	for !r.ended {
		n, ended := w.ends[end].Read(w.now, id, w.buf[:])
		r.sum = crc32.Update(r.sum, crc32.IEEETable, w.buf[:n])
		r.got += n
		if r.ended = ended; n == 0 {
			return
		}
	}
}

// long reports whether the tests run at length: make sim.
func long() bool { return os.Getenv("SIM_LONG") != "" }

// TestEveryByteOnceAndInOrder: lanes die, fall silent and return at any instant.
func TestEveryByteOnceAndInOrder(t *testing.T) {
	for _, s := range schedulers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(100)
			switch {
			case long():
				seeds = 1000
			case s.yields != nil: // for measurements only
				seeds = 25
			}
			for seed := range seeds {
				if exchange(t, seed, s); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func exchange(t *testing.T, seed uint64, s scheduler) {
	const budget = 4 << 20
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, budget)
	for _, m := range w.ends {
		s.use(m)
	}
	newLane := func() uint32 {
		return w.add(float64(100_000+rnd.IntN(5_000_000)), time.Duration(1+rnd.IntN(80))*time.Millisecond)
	}
	var live []uint32
	for range 1 + rnd.IntN(3) {
		live = append(live, newLane())
	}
	const streams = 3
	var up, down [streams + 1][]byte
	var upRead, downRead [streams + 1]checkedReader
	for id := uint32(1); id <= streams; id++ {
		up[id], down[id] = content(id, rnd.IntN(150_000)), content(100+id, rnd.IntN(300_000))
		if got, ok := w.ends[0].Open(w.now, fmt.Sprintf("host-%d:443", id)); !ok || got != id {
			t.Fatal(got, ok)
		}
	}
	sent := [2][streams + 1]int{}
	done := func() bool {
		return w.ends[0].Streams()+w.ends[1].Streams() == 0
	}
	for step := 0; !done(); step++ {
		if step > 60_000 {
			t.Fatalf("seed %d is not done: %d and %d streams", seed, w.ends[0].Streams(), w.ends[1].Streams())
		}
		for id := uint32(1); id <= streams; id++ {
			for end, all := range [2][]byte{up[id], down[id]} {
				m := w.ends[end]
				if s := m.streams[id]; s == nil || end == 1 && s.to == "" {
					continue
				}
				if end == 1 {
					m.Connect(w.now, id)
				}
				if at := sent[end][id]; at < len(all) {
					n := min(1+rnd.IntN(40_000), len(all)-at)
					m.Write(w.now, id, bytes.Clone(all[at:at+n]))
					sent[end][id] += n
				} else {
					m.CloseWrite(w.now, id)
				}
			}
			if w.ends[1].Destination(id) != "" {
				upRead[id].read(w, 1, id)
			}
			downRead[id].read(w, 0, id)
		}
		switch r := rnd.IntN(2000); {
		case step > 2_000: // from here on they stay
			for _, id := range live {
				w.dark[id] = false
			}
			if len(live) == 0 {
				live = append(live, newLane())
			}
		case r < 6 && len(live) > 0:
			i := rnd.IntN(len(live))
			w.kill(live[i])
			live = append(live[:i], live[i+1:]...)
		case r < 14 && len(live) > 0:
			id := live[rnd.IntN(len(live))]
			w.dark[id] = !w.dark[id]
		case r < 22 && len(live) < 4:
			live = append(live, newLane())
		}
		w.step()
		for end, m := range w.ends {
			if n := m.Held(); n > budget+streams*leastWindow {
				t.Fatalf("seed %d: end %d holds %d bytes", seed, end, n)
			}
		}
	}
	for id := uint32(1); id <= streams; id++ {
		for what, c := range map[string]struct {
			r    checkedReader
			want []byte
		}{"up": {upRead[id], up[id]}, "down": {downRead[id], down[id]}} {
			if c.r.got != len(c.want) || c.r.sum != crc32.ChecksumIEEE(c.want) {
				t.Errorf("stream %d %s: %d bytes of %d, or wrong ones", id, what, c.r.got, len(c.want))
			}
		}
	}
	for end, m := range w.ends {
		if m.used != 0 || m.flying != 0 || m.Held() != 0 {
			t.Errorf("end %d: %d bytes taken, %d not acknowledged, %d held", end, m.used, m.flying, m.Held())
		}
	}
}

// download sends bytes from the server while each, if not nil, is called every millisecond, and returns how long it took.
func (w *world) download(size int, each func()) time.Duration {
	w.Helper()
	began := w.now
	id, _ := w.ends[0].Open(w.now, "host:443")
	var r checkedReader
	left := size
	for r.got < size {
		if s := w.ends[1].streams[id]; s != nil && s.to != "" {
			w.ends[1].Connect(w.now, id)
			for left > 0 && s.queued < MaxQueue {
				n := min(left, 32<<10)
				w.ends[1].Write(w.now, id, make([]byte, n))
				left -= n
			}
		}
		r.read(w, 0, id)
		if each != nil {
			each()
		}
		if w.step(); w.now.Sub(began) > time.Minute {
			w.Fatalf("%d of %d bytes after a minute", r.got, size)
		}
	}
	return w.now.Sub(began)
}

// TestFirstBytes: the first bytes leave with the opening, and a stream is connected after one round trip of the lane: no later
// than a direct connection.
func TestFirstBytes(t *testing.T) {
	const delay = 20 * time.Millisecond
	w := newWorld(t, 1<<20)
	w.add(5e6, delay)
	id, _ := w.ends[0].Open(w.now, "host:443")
	w.ends[0].Write(w.now, id, []byte("hello"))
	began := w.now
	var there, back time.Duration
	var r checkedReader
	for back == 0 && w.now.Sub(began) < time.Second {
		w.step()
		if w.ends[1].Destination(id) != "" {
			w.ends[1].Connect(w.now, id)
			if r.read(w, 1, id); r.got == len("hello") && there == 0 {
				there = w.now.Sub(began)
			}
		}
		for _, e := range w.ends[0].Events() {
			if e.What == Connected {
				back = w.now.Sub(began)
			}
		}
	}
	const slack = 5 * time.Millisecond // for the world's steps
	if there < delay || there > delay+slack || back < 2*delay || back > 2*delay+slack {
		t.Errorf("the first bytes were there after %s, the stream was connected after %s", there, back)
	}
}

// TestBundles: two lanes carry almost as much as their links can, and little is held.
func TestBundles(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(10e6, 10*time.Millisecond)
	w.add(4e6, 30*time.Millisecond)
	held := int64(0)
	took := w.download(14_000_000, func() { held = max(held, w.ends[0].Held()) })
	if took > 1200*time.Millisecond || held > 4_000_000 {
		t.Errorf("took %s, held %d bytes", took, held)
	}
}

// TestInteractive: small messages pass bulk data. While the lane is starting, more bulk data may be in front of them.
func TestInteractive(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(2e6, 10*time.Millisecond)
	id, _ := w.ends[0].Open(w.now, "ssh:22")
	var worst, first time.Duration
	var asked time.Time
	settled := w.now.Add(500 * time.Millisecond)
	var r checkedReader
	w.download(10_000_000, func() {
		if w.ends[1].Destination(id) == "" {
			return
		}
		before := r.got
		r.read(w, 0, id)
		switch {
		case asked.IsZero():
			w.ends[1].Write(w.now, id, []byte("echo"))
			asked = w.now
		case r.got > before:
			if took := w.now.Sub(asked); asked.Before(settled) {
				first = max(first, took)
			} else {
				worst = max(worst, took)
			}
			asked = time.Time{}
		}
	})
	if worst == 0 || worst > 60*time.Millisecond || first > 120*time.Millisecond {
		t.Errorf("the slowest took %s, %s at the start", worst, first)
	}
}

// TestSilentLane: its bytes soon go over the other lane, and arrive once.
func TestSilentLane(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(3e6, 20*time.Millisecond)
	dead := w.add(3e6, 20*time.Millisecond)
	held, steps := int64(0), 0
	took := w.download(6_000_000, func() {
		if steps++; steps == 500 {
			w.dark[dead] = true
		}
		held = max(held, w.ends[0].Held())
	})
	if took > 2500*time.Millisecond {
		t.Errorf("took %s", took)
	}
	if ids := w.ends[1].Silent(w.now, 0); len(ids) != 1 || ids[0] != dead {
		t.Errorf("silent: %v", ids)
	}
	if w.carried > 6_000_000+200_000 {
		t.Errorf("%d bytes were carried", w.carried)
	}
}

// TestFair: two streams get the same goodput, within 3 %.
func TestFair(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(5e6, 10*time.Millisecond)
	other, _ := w.ends[0].Open(w.now, "host:443")
	var r checkedReader
	at := 0
	w.download(5_000_000, func() {
		if s := w.ends[1].streams[other]; s != nil && s.to != "" {
			w.ends[1].Connect(w.now, other)
			for s.queued < MaxQueue {
				w.ends[1].Write(w.now, other, make([]byte, 32<<10))
			}
		}
		r.read(w, 0, other)
		at = r.got
	})
	if at < 4_850_000 || at > 5_150_000 {
		t.Errorf("one got 5000000 bytes, the other %d", at)
	}
}

// TestLongerRoute: a route that has become longer than the lowest round trip does not starve a lane.
func TestLongerRoute(t *testing.T) {
	const rate, rtt = 5e6, 200 * time.Millisecond
	now := start
	l := &lane{since: now, rounds: settledRounds}
	p := Path{RTT: rtt, MinRTT: 20 * time.Millisecond, CWnd: 1 << 20, InFlight: 150 << 10, DeliveryRate: 150 << 10 / rtt.Seconds()}
	for range 3000 {
		now = now.Add(10 * time.Millisecond)
		p.InFlight = max(p.InFlight-int(l.excess()), 8<<10)
		p.InFlight = min(p.InFlight, int(1.5*rate*rtt.Seconds()))
		p.DeliveryRate = min(rate, float64(p.InFlight)/p.RTT.Seconds())
		p.Progress += uint64(p.DeliveryRate / 100)
		p.RTT = max(rtt, seconds(float64(p.InFlight)/rate))
		l.observe(now, p)
		l.probe.limited = true
	}
	if p.DeliveryRate < 0.9*rate {
		t.Errorf("it sends %.0f bytes per second of %.0f", p.DeliveryRate, rate)
	}
}

// TestRefusesViolations: each violation is an error, not a panic.
func TestRefusesViolations(t *testing.T) {
	now := start
	for name, frames := range map[string][]Frame{
		"beyond the window":   {{Kind: Data, Stream: 1, Value: leastWindow, Data: []byte("x")}},
		"after the end":       {{Kind: Fin, Stream: 1, Value: 1}, {Kind: Data, Stream: 1, Value: 1, Data: []byte("x")}},
		"end before data":     {{Kind: Data, Stream: 1, Value: 9, Data: []byte("x")}, {Kind: Fin, Stream: 1, Value: 1}},
		"two ends":            {{Kind: Fin, Stream: 1, Value: 1}, {Kind: Fin, Stream: 1, Value: 2}},
		"number far ahead":    {{Kind: Data, Stream: maxEarly + 1, Data: []byte("x")}},
		"ack of what was not": {{Kind: Ack, Stream: 7, Value: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Config{Budget: 1 << 20, MaxStreams: 4})
			m.AddLane(now, 7)
			var err error
			for _, f := range frames {
				err = m.Receive(now, 7, f)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
	b := Frame{Kind: Data, Stream: 1, Data: []byte("x")}.Append(nil)
	binary.BigEndian.PutUint16(b[2:], MaxData+1)
	if _, _, err := Decode(b); err == nil {
		t.Error("a frame that is too long")
	}
}

// TestLimits: streams beyond the limit are reset, and a stream that has ended does not return.
func TestLimits(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.ends[1].cfg.MaxStreams = 1
	w.add(1e6, time.Millisecond)
	first, _ := w.ends[0].Open(w.now, "a:1")
	second, _ := w.ends[0].Open(w.now, "b:1")
	for range 50 {
		w.step()
	}
	if e := w.ends[0].Events(); len(e) != 1 || e[0] != (Event{second, Broken, CauseLimit}) {
		t.Errorf("%+v", e)
	}
	w.ends[0].Reset(w.now, first, CauseClosed)
	for range 50 {
		w.step()
	}
	if n := w.ends[1].Streams(); n != 0 {
		t.Errorf("%d streams", n)
	}
	if err := w.ends[1].Receive(w.now, 1, Frame{Kind: Open, Stream: first, Data: []byte("a:1")}); err != nil || w.ends[1].Streams() != 0 {
		t.Errorf("%v, %d streams", err, w.ends[1].Streams())
	}
}

// TestUnreadResets: a client that opens streams, which the server refuses, and acknowledges nothing does not fill the server's
// memory.
func TestUnreadResets(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(Config{Budget: 1 << 20, MaxStreams: 1})
	m.AddLane(now, 1)
	for i := uint32(1); ; i++ {
		err := m.Receive(now, 1, Frame{Kind: Open, Stream: i, Data: []byte("a:1")})
		m.Events()
		if err == nil && i <= maxResets+1 {
			continue
		}
		if !errors.Is(err, ErrProtocol) || len(m.control) > maxResets {
			t.Errorf("%d frames after %d streams: %v", len(m.control), i, err)
		}
		return
	}
}

// TestReadResets: a client that acknowledges the resets may open any number of streams one after the other.
func TestReadResets(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.ends[1].cfg.MaxStreams = 0
	w.add(1e9, 0)
	for range 2 * maxResets / 64 {
		for range 64 {
			if _, ok := w.ends[0].Open(w.now, "a:1"); !ok {
				t.Fatal("too many streams")
			}
		}
		for range 100 {
			w.step()
		}
	}
	if n := w.ends[1].resets; n > maxResets/2 {
		t.Errorf("%d resets are owed", n)
	}
}
