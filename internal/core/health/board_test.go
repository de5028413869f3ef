package health_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

const ms = time.Millisecond

// world drives a Board in virtual time and records which links it wants probed. Links that failed recently are probed no more often
// than others, unless a test sets another pace.
type world struct {
	t      *testing.T
	b      health.Board
	now    time.Time
	start  time.Time
	soon   time.Duration // minimum time between two probes, pace if it is less
	pace   time.Duration
	probes []health.Probe
}

// probe is a health.Probe without its unexported fields.
type probe struct {
	at   time.Duration // since the start
	link int8
}

func (w *world) seen(p health.Probe) probe { return probe{p.At.Sub(w.start), p.Link} }

func newWorld(t *testing.T, links int8) *world {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &world{t: t, now: now, start: now, soon: health.Seldom, pace: health.Seldom}
	for i := range links {
		w.b.Present(now, i, true)
	}
	return w
}

// tick does the work due now and returns the next deadline.
func (w *world) tick() time.Time {
	w.t.Helper()
	probes, next := w.b.Tick(w.now, func(int8) (least, most time.Duration) { return min(w.soon, w.pace), w.pace })
	for _, p := range probes {
		if !p.At.Equal(w.now) {
			w.t.Fatalf("a probe of %v, now is %v", p.At, w.now)
		}
	}
	w.probes = append(w.probes, probes...)
	if !next.IsZero() && !next.After(w.now) {
		w.t.Fatalf("deadline %v is not after now, %v", next, w.now)
	}
	return next
}

// pass lets time pass. Probes that fall due are not answered.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; {
		next := w.tick()
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		w.now = next
	}
}

func answered(ok bool) health.Answer {
	if ok {
		return health.Answered
	}
	return health.NoAnswer
}

// answer lets time pass until the next probe and reports its result.
func (w *world) answer(ok bool) probe {
	w.t.Helper()
	for n := len(w.probes); ; {
		next := w.tick()
		if len(w.probes) > n {
			p := w.probes[n]
			w.b.Probed(w.now, p, answered(ok))
			return w.seen(p)
		}
		if next.IsZero() {
			w.t.Fatal("no probe is due, ever")
		}
		w.now = next
	}
}

func (w *world) want(link int8, s health.State, c health.Cause) {
	w.t.Helper()
	if gs, gc := w.b.State(link); gs != s || gc != c {
		w.t.Errorf("after %v link %d is %v (%v), want %v (%v)", w.now.Sub(w.start), link, gs, gc, s, c)
	}
}

func (w *world) silent()    { w.b.Silent(w.now, 0) }
func (w *world) alive()     { w.b.Alive(w.now, 0) }
func (w *world) down()      { w.b.Present(w.now, 0, false) }
func (w *world) up()        { w.b.Present(w.now, 0, true) }
func (w *world) dial()      { w.b.Failed(w.now, 0, health.DialFailed) }
func (w *world) bind()      { w.b.Failed(w.now, 0, health.BindFailed) }
func (w *world) reached()   { w.b.Probed(w.now, w.last(), health.Answered) }
func (w *world) unreached() { w.b.Probed(w.now, w.last(), health.NoAnswer) }
func (w *world) last() health.Probe {
	if len(w.probes) == 0 {
		return health.Probe{}
	}
	return w.probes[len(w.probes)-1]
}
func (w *world) second()       { w.pass(time.Second); w.tick() }
func (w *world) threeSeconds() { w.pass(3 * time.Second); w.tick() }
func (w *world) run(steps ...func(*world)) {
	for _, s := range steps {
		s(w)
	}
}

// TestTransitions has every edge of the diagram in doc.go, for link 0 of two.
func TestTransitions(t *testing.T) {
	type steps = []func(*world)
	var (
		up        = steps{}
		suspect   = steps{(*world).silent}
		banned    = steps{(*world).dial}
		silenced  = steps{(*world).silent, (*world).threeSeconds} // banned for silence
		probing   = steps{(*world).dial, (*world).second}
		listening = steps{(*world).silent, (*world).threeSeconds, (*world).second} // probed after silence
		down      = steps{(*world).down}
	)
	tests := []struct {
		name  string
		from  steps
		do    func(*world)
		state health.State
		cause health.Cause
	}{
		{"up, silent", up, (*world).silent, health.Suspect, health.Silence},
		{"up, no connection", up, (*world).dial, health.Banned, health.DialFailed},
		{"up, no bind", up, (*world).bind, health.Banned, health.BindFailed},
		{"up, gone", up, (*world).down, health.Down, health.Gone},
		{"up, a byte", up, (*world).alive, health.Up, health.NoCause},
		{"up, still there", up, (*world).up, health.Up, health.NoCause},
		{"up, time", up, (*world).threeSeconds, health.Up, health.NoCause},
		{"suspect, a byte", suspect, (*world).alive, health.Up, health.NoCause},
		{"suspect, silent again", suspect, (*world).silent, health.Suspect, health.Silence},
		{"suspect, not long enough", suspect, (*world).second, health.Suspect, health.Silence},
		{"suspect, 3 s of silence", suspect, (*world).threeSeconds, health.Banned, health.Silence},
		{"suspect, no connection", suspect, (*world).dial, health.Banned, health.DialFailed},
		{"suspect, gone", suspect, (*world).down, health.Down, health.Gone},
		{"suspect, still there", suspect, (*world).up, health.Suspect, health.Silence},
		{"banned, due", banned, (*world).second, health.Probing, health.DialFailed},
		{"banned, gone", banned, (*world).down, health.Down, health.Gone},
		{"banned, still there", banned, (*world).up, health.Banned, health.DialFailed},
		{"banned, silent", banned, (*world).silent, health.Banned, health.DialFailed},
		{"banned, fails again", banned, (*world).bind, health.Banned, health.DialFailed},
		{"banned, a late byte does not show that it connects", banned, (*world).alive, health.Banned, health.DialFailed},
		{"banned for silence, a byte", silenced, (*world).alive, health.Up, health.NoCause},
		{"probing, connected", probing, (*world).reached, health.Up, health.NoCause},
		{"probing, not connected", probing, (*world).unreached, health.Banned, health.DialFailed},
		{"probing, gone", probing, (*world).down, health.Down, health.Gone},
		{"probing, a late byte", probing, (*world).alive, health.Probing, health.DialFailed},
		{"probing, fails again", probing, (*world).dial, health.Probing, health.DialFailed},
		{"probing after silence, a byte", listening, (*world).alive, health.Up, health.NoCause},
		{"down, back", down, (*world).up, health.Up, health.NoCause},
		{"down, gone", down, (*world).down, health.Down, health.Gone},
		{"down, a late byte", down, (*world).alive, health.Down, health.Gone},
		{"down, silent", down, (*world).silent, health.Down, health.Gone},
		{"down, fails", down, (*world).dial, health.Down, health.Gone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.run(tt.from...)
			before, _ := w.b.State(0)
			w.b.Changes()
			tt.do(w)
			w.want(0, tt.state, tt.cause)
			w.want(1, health.Up, health.NoCause)
			var want []health.Change
			if before != tt.state {
				want = []health.Change{{Link: 0, State: tt.state, Cause: tt.cause}}
			}
			if got := w.b.Changes(); !slices.Equal(got, want) {
				t.Errorf("changes %v, want %v", got, want)
			}
			if got := w.b.Changes(); len(got) != 0 {
				t.Errorf("told twice: %v", got)
			}
		})
	}
}

func TestUnknownLinkIsDown(t *testing.T) {
	var b health.Board
	if s, c := b.State(3); s != health.Down || c != health.NoCause {
		t.Errorf("%v (%v)", s, c)
	}
	if probes, next := b.Tick(time.Time{}, func(int8) (least, most time.Duration) { return 1, 1 }); len(probes) > 0 || !next.IsZero() {
		t.Errorf("an empty board wants %v at %v", probes, next)
	}
}
