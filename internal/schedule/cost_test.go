package schedule_test

import (
	"testing"

	"github.com/tributary-http/tributary/internal/schedule"
)

// bigView is a transfer over 4 links with 1,000 attempts and 1,000 free ranges. Every link is busy.
func bigView() *schedule.View {
	const n, piece = 1000, 1 * mb
	v := newView(2*n*piece, huge, equalLinks(4)...)
	v.Free = v.Free[:0]
	for i := range int64(n) {
		at := 2 * i * piece
		v.Attempts = append(v.Attempts, schedule.Attempt{
			ID: uint32(i + 1), Link: int8(i % 4), Range: rng(at, at+piece), Cursor: at + 1, Headed: true,
		})
		l := &v.Links[i%4]
		l.Running++
		l.Asked += piece - 1
		v.Free = append(v.Free, rng(at+piece, at+2*piece))
	}
	return v
}

// costly are the views that take a scheduler through each of its ways: to ask, to wait, to take a tail, to cut.
func costly() map[string]*schedule.View {
	ask1 := bigView()
	ask1.Links[3].Running, ask1.Links[3].Asked = 1, 1
	tail := bigView()
	tail.Free = nil
	tail.Links[3].Running, tail.Links[3].Asked = 1, 1
	lost := bigView()
	for i := range lost.Links {
		lost.Links[i].Usable = false
	}
	idle := bigView()
	idle.Links[3].Running, idle.Links[3].Asked = 0, 0
	for i := 3; i < len(idle.Attempts); i += 4 {
		idle.Attempts[i].Link = 2
	}
	return map[string]*schedule.View{"busy": bigView(), "ask": ask1, "tail": tail, "lost": lost, "idle": idle}
}

func TestNoAllocations(t *testing.T) {
	why := map[string]schedule.Reason{"ask": schedule.Window, "tail": schedule.Tail, "idle": schedule.Window}
	for what, v := range costly() {
		if d := guarded(v); d.Why != why[what] {
			t.Errorf("the view %q leads to %s", what, show(d))
		}
	}
	for _, name := range schedule.Names() {
		for what, v := range costly() {
			s, _ := make2(t, name)
			s.Next(start, v) // Naive splits the object once
			if n := testing.AllocsPerRun(100, func() { s.Next(start, v) }); n != 0 {
				t.Errorf("%s, %s: %g allocations", name, what, n)
			}
		}
	}
	v := silent()
	if n := testing.AllocsPerRun(100, func() { schedule.Rescue(start, v, &v.Attempts[0], rng(1*mb, 3*mb)) }); n != 0 {
		t.Errorf("Rescue: %g allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, name := range schedule.Names() {
		for _, what := range []string{"ask", "busy", "idle", "tail"} {
			v := costly()[what]
			b.Run(name+"/"+what, func(b *testing.B) {
				s, err := schedule.New(name)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					s.Next(start, v)
				}
			})
		}
	}
}
