package lanes

import (
	"testing"
	"time"
)

// fill writes to a stream while there is room, and returns how many bytes.
func fill(now time.Time, m *Mux, id uint32) (n int64) {
	for room := true; room; n += 8 << 10 {
		room = m.Write(now, id, make([]byte, 8<<10))
	}
	return n
}

// TestQueuesAreBounded: the bytes that many streams want to send count against the budget, and each stream resumes as soon as
// there is room.
func TestQueuesAreBounded(t *testing.T) {
	const budget, streams = 1 << 20, 50
	w := newWorld(t, budget)
	client := w.ends[0]
	sent := map[uint32]int64{}
	queued := func() (n int64) {
		for _, s := range client.streams {
			n += int64(s.queued)
		}
		return n
	}
	for range streams {
		id, ok := client.Open(w.now, "host:22")
		if !ok {
			t.Fatal("not opened")
		}
		sent[id] = fill(w.now, client, id)
	}
	if n, most := queued(), int64(budget+streams*leastQueue); n > most || n < budget/2 {
		t.Errorf("%d bytes are queued, at most %d may be", n, most)
	}
	client.Events()
	w.add(5e6, 10*time.Millisecond)
	var got [streams + 1]checkedReader
	done := func() bool {
		for id := range sent {
			if int64(got[id].got) < sent[id] {
				return false
			}
		}
		return true
	}
	const each = 100 << 10
	for steps := 0; !done(); steps++ {
		if steps > 20_000 {
			t.Fatal("not all of it comes")
		}
		w.step()
		for _, e := range client.Events() {
			if e.What == Writable && sent[e.Stream] < each {
				sent[e.Stream] += fill(w.now, client, e.Stream)
			}
		}
		for id := range sent {
			if w.ends[1].Destination(id) != "" {
				w.ends[1].Connect(w.now, id)
				got[id].read(w, 1, id)
			}
		}
	}
	for id, n := range sent {
		if n < each {
			t.Errorf("stream %d may send %d bytes only", id, n)
		}
	}
}

// TestNobodyAcknowledges: a peer that takes bytes and never acknowledges them gets no more than the budget.
func TestNobodyAcknowledges(t *testing.T) {
	const budget = 1 << 20
	m := New(Config{Client: true, Budget: budget, MaxStreams: 1})
	m.AddLane(start, 1)
	id, _ := m.Open(start, "host:22")
	m.streams[id].credit = 1 << 40
	now, sent := start, 0
	for range 10_000 {
		m.Write(now, id, make([]byte, 8<<10))
		now = now.Add(time.Millisecond)
		m.Observe(now, 1, Path{RTT: time.Millisecond, MinRTT: time.Millisecond, CWnd: 1 << 20, DeliveryRate: 1e8, Progress: uint64(sent)})
		b, _ := m.Next(now, 1, nil)
		sent += len(b)
	}
	if sent > budget+100<<10 || sent < budget/2 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// left is a Budget.
type left int64

func (l *left) Take(n int64) { *l -= left(n) }
func (l *left) Left() int64  { return int64(*l) }

// TestSharedBudget: sessions share the budget, no stream is opened without room, and the end of a session gives back what it took.
func TestSharedBudget(t *testing.T) {
	const budget = 1 << 20
	shared := left(budget)
	server := func() *Mux {
		m := New(Config{Budget: 64 << 20, Shared: &shared, MaxStreams: 100})
		m.AddLane(start, 1)
		return m
	}
	open := func(m *Mux, id uint32) (accepted bool) {
		if err := m.Receive(start, 1, Frame{Kind: Open, Stream: id, Value: 64 << 10, Data: []byte("host:22")}); err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Events() {
			accepted = accepted || e.What == Accepted && e.Stream == id
		}
		if accepted {
			m.Connect(start, id)
		}
		return accepted
	}
	a, b := server(), server()
	if !open(a, 1) {
		t.Fatal("the first stream is not accepted")
	}
	fill(start, a, 1)
	if shared > 0 {
		t.Fatalf("%d bytes are left", shared)
	}
	if open(b, 1) {
		t.Error("a stream is accepted without room")
	}
	a.Close()
	if n := budget - shared; n != 0 {
		t.Errorf("%d bytes are taken after the end", n)
	}
	a.Reset(start, 1, CauseClosed) // does not count again
	if !open(b, 2) || shared >= budget {
		t.Errorf("no stream is accepted although there is room: %d bytes are taken", budget-shared)
	}
	b.Reset(start, 2, CauseClosed)
	if n := budget - shared; n != 0 {
		t.Errorf("%d bytes are taken after a reset", n)
	}
}
