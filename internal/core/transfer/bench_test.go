package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

const readSize = 16 * kB

// busy is a transfer of a huge object over n links that pipeline, every one kept full by the default scheduler. The links deliver
// in turn; the client takes everything.
type busy struct {
	m     *Machine
	now   time.Time
	ready int64 // offset up to which bytes can be delivered
	head  int64
	asks  [][]ask
	turn  int
	reads int
}

type ask struct {
	id      uint32
	r       segment.Range
	cursor  int64
	credit  int64
	hasHead bool
}

func newBusy(n int) *busy {
	sched, err := schedule.New(schedule.Default)
	if err != nil {
		panic(err)
	}
	cfg := Config{Requested: segment.Range{End: Unknown}, Initial: 64 * kB, Scheduler: sched, WaitForLink: time.Minute, Reorder: 16 * mB}
	for i := range n {
		cfg.Links = append(cfg.Links, LinkConfig{State: health.Up, Learned: estimate.Entry{Rate: 10e6, Pipelining: estimate.Works}})
		cfg.Order = append(cfg.Order, int8(i))
	}
	b := &busy{m: New(cfg), now: time.Unix(1_000_000, 0), asks: make([][]ask, n)}
	b.handle(Event{Kind: Tick})
	for range 100 * n {
		b.step()
	}
	return b
}

func (b *busy) handle(e Event) {
	r := b.m.Handle(b.now, e)
	b.ready = r.Ready
	for i := 0; i < len(r.Do); i++ {
		switch a := r.Do[i]; a.Kind {
		case Open: // its answer comes after the actions
			defer b.handle(Event{Kind: Opened, Conn: a.Conn, RTT: 20 * ms})
		case Fetch:
			b.asks[a.Link] = append(b.asks[a.Link], ask{id: a.Attempt, r: a.Range, cursor: a.Range.Start, credit: a.UpTo})
		case Credit:
			for j := range b.asks[a.Link] {
				if k := &b.asks[a.Link][j]; k.id == a.Attempt {
					k.credit = a.UpTo
				}
			}
		}
	}
}

// step lets one link deliver: a head, the end of an answer, or up to 16 KiB.
func (b *busy) step() {
	b.now = b.now.Add(ms)
	b.turn = (b.turn + 1) % len(b.asks)
	q := b.asks[b.turn]
	if len(q) == 0 {
		return
	}
	k := &q[0]
	switch n := min(readSize, min(k.credit, k.r.End)-k.cursor); {
	case !k.hasHead:
		k.hasHead = true
		b.handle(Event{Kind: HeadReceived, Attempt: k.id, Range: k.r, Size: 1 << 50})
	case k.cursor == k.r.End:
		id := k.id
		b.asks[b.turn] = q[:copy(q, q[1:])]
		b.handle(Event{Kind: Ended, Attempt: id, Outcome: fault.Complete})
	case n > 0:
		k.cursor += n
		b.reads++
		b.handle(Event{Kind: Read, Attempt: k.id, N: n})
		if n := b.ready - b.head; n > 0 {
			b.head = b.ready
			b.handle(Event{Kind: Delivered, N: n})
		}
	}
}

// TestHandleAllocatesNothing: Handle takes one event per read and one per delivery, some 10,000 in a second.
func TestHandleAllocatesNothing(t *testing.T) {
	b := newBusy(4)
	if n := testing.AllocsPerRun(5000, b.step); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

func BenchmarkHandle(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(string(rune('0'+n))+" links", func(b *testing.B) {
			x := newBusy(n)
			x.reads = 0
			b.ReportAllocs()
			for b.Loop() {
				x.step()
			}
			b.ReportMetric(float64(x.reads)/float64(b.N), "reads/op")
			b.ReportMetric(float64(len(x.m.attempts)), "attempts")
		})
	}
}
