package health_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

// TestBoards has two origins over two links. Its steps are about link 0.
func TestBoards(t *testing.T) {
	type rig struct {
		all    health.Boards
		own    [2]*health.Board
		now    time.Time
		asked  []health.Probe // by the first origin
		forAll []health.Probe
	}
	type step = func(r *rig)
	later := func(d time.Duration) step {
		return func(r *rig) {
			r.now = r.now.Add(d)
			seldom := func(int8) (least, most time.Duration) { return health.Seldom, health.Seldom }
			forAll, _ := r.all.Tick(r.now, func(int8) bool { return true })
			r.forAll = append(r.forAll, forAll...)
			asked, _ := r.own[0].Tick(r.now, seldom)
			r.asked = append(r.asked, asked...)
			r.own[1].Tick(r.now, seldom)
		}
	}
	silent := func(r *rig) { r.own[0].Silent(r.now, 0) }
	alive := func(origin int) step { return func(r *rig) { r.all.Alive(r.now, r.own[origin], 0) } }
	last := func(probes []health.Probe) health.Probe { return probes[len(probes)-1] }
	probed := func(ok bool) step { return func(r *rig) { r.all.Probed(r.now, r.own[0], last(r.asked), answered(ok)) } }
	failed := func(c health.Cause) step { return func(r *rig) { r.all.Failed(r.now, 0, c) } }
	tried := func(ok bool) step { return func(r *rig) { r.all.Tried(r.now, last(r.forAll), answered(ok)) } }
	present := func(here bool) step { return func(r *rig) { r.all.Present(r.now, 0, here) } }
	const second = time.Second
	for _, tt := range []struct {
		name          string
		steps         []step
		all, own, two health.State
	}{
		{"a verdict is an origin's own", []step{silent, later(3 * second)}, health.Up, health.Banned, health.Up},
		{"and so is its end", []step{silent, later(3 * second), later(second), probed(true)}, health.Up, health.Up, health.Up},
		{"confirmed, it holds for all", []step{failed(health.Silence)}, health.Banned, health.Banned, health.Banned},
		{"a probe of one origin fails", []step{failed(health.Silence), later(second), probed(false)}, health.Probing, health.Banned, health.Probing},
		{"a probe of one origin ends it for all", []step{failed(health.Silence), later(second), probed(true)}, health.Up, health.Up, health.Up},
		{"a probe for all ends it for all", []step{failed(health.DialFailed), later(second), tried(true)}, health.Up, health.Up, health.Up},
		{"a probe for all fails", []step{failed(health.DialFailed), later(second), tried(false)}, health.Banned, health.Probing, health.Probing},
		{"a byte ends silence for all", []step{failed(health.Silence), alive(1)}, health.Up, health.Up, health.Up},
		{"a byte proves nothing about new connections", []step{failed(health.DialFailed), alive(1)}, health.Banned, health.Banned, health.Banned},
		{"a byte for one origin leaves another's verdict", []step{silent, later(3 * second), alive(1)}, health.Up, health.Banned, health.Up},
		{"the link goes", []step{silent, present(false)}, health.Down, health.Down, health.Down},
		{"the link returns", []step{failed(health.Silence), present(false), present(true)}, health.Up, health.Up, health.Up},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &rig{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			r.all.Present(r.now, 0, true)
			r.all.Present(r.now, 1, true)
			r.own = [2]*health.Board{r.all.Join(), r.all.Join()}
			for _, do := range tt.steps {
				do(r)
			}
			all, _ := r.all.State(0)
			own, _ := r.own[0].State(0)
			two, _ := r.own[1].State(0)
			if all != tt.all || own != tt.own || two != tt.two {
				t.Errorf("for all %v, for the origin %v, for the other %v; want %v, %v, %v", all, own, two, tt.all, tt.own, tt.two)
			}
			if len(r.own[0].Changes()) == 0 {
				t.Error("the origin was told nothing")
			}
		})
	}
}

// TestBoardsJoinAndLeave lets an origin join while a link is banned for everybody, and leave.
func TestBoardsJoinAndLeave(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all health.Boards
	all.Present(now, 0, true)
	all.Present(now, 1, true)
	all.Failed(now, 0, health.Silence)
	now = now.Add(time.Second)
	forAll, _ := all.Tick(now, func(int8) bool { return true }) // a probe is under way
	own := all.Join()
	if s, c := own.State(0); s != health.Banned || c != health.Silence {
		t.Errorf("who joins finds the link %v (%v)", s, c)
	}
	if probes, _ := own.Tick(now, func(int8) (least, most time.Duration) { return health.Seldom, health.Seldom }); len(probes) != 1 {
		t.Errorf("%d probes are due, want one of its own", len(probes))
	}
	all.Leave(own)
	all.Tried(now, forAll[0], health.Answered)
	if s, _ := own.State(0); s != health.Probing {
		t.Errorf("who has left is told that the link is %v", s)
	}
}
