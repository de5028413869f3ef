package health_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/health"
)

const ms = time.Millisecond

// world drives a Board in virtual time and writes down which links it wants probed.
type world struct {
	t      *testing.T
	b      health.Board
	now    time.Time
	start  time.Time
	quiet  bool // no transfers: nobody to probe for
	probes []probe
}

type probe struct {
	at   time.Duration // since the start
	link int8
}

func newWorld(t *testing.T, links int8) *world {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &world{t: t, now: now, start: now}
	for i := range links {
		w.b.Present(now, i, true)
	}
	return w
}

// tick does what is due now and returns the next deadline.
func (w *world) tick() time.Time {
	w.t.Helper()
	probes, next := w.b.Tick(w.now, !w.quiet)
	for _, p := range probes {
		w.probes = append(w.probes, probe{w.now.Sub(w.start), p})
	}
	if !next.IsZero() && !next.After(w.now) {
		w.t.Fatalf("deadline %v is not after now, %v", next, w.now)
	}
	return next
}

// pass lets time go by. Probes that fall due get no answer.
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

// answer lets time go by until the next probe and says how it ended.
func (w *world) answer(ok bool) probe {
	w.t.Helper()
	for n := len(w.probes); ; {
		next := w.tick()
		if len(w.probes) > n {
			p := w.probes[n]
			w.b.Probed(w.now, p.link, ok)
			return p
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

func (w *world) silent()       { w.b.Silent(w.now, 0) }
func (w *world) alive()        { w.b.Alive(w.now, 0) }
func (w *world) down()         { w.b.Present(w.now, 0, false) }
func (w *world) up()           { w.b.Present(w.now, 0, true) }
func (w *world) dial()         { w.b.Failed(w.now, 0, health.DialFailed) }
func (w *world) bind()         { w.b.Failed(w.now, 0, health.BindFailed) }
func (w *world) reached()      { w.b.Probed(w.now, 0, true) }
func (w *world) unreached()    { w.b.Probed(w.now, 0, false) }
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
		silenced  = steps{(*world).silent, (*world).threeSeconds} // banned for its silence
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
	if probes, next := b.Tick(time.Time{}, true); len(probes) > 0 || !next.IsZero() {
		t.Errorf("an empty board wants %v at %v", probes, next)
	}
}

func TestSuspicionBecomesBanAfter3s(t *testing.T) {
	w := newWorld(t, 2)
	w.pass(time.Minute)
	w.silent()
	if next := w.tick(); next.Sub(w.now) != 3*time.Second {
		t.Errorf("deadline in %v, want 3 s", next.Sub(w.now))
	}
	w.now = w.now.Add(3*time.Second - ms)
	w.tick()
	w.want(0, health.Suspect, health.Silence)
	w.now = w.now.Add(ms)
	w.tick()
	w.want(0, health.Banned, health.Silence)
	if n := w.b.Bans(0); n != 1 {
		t.Errorf("%d bans", n)
	}
}

func TestSuspicionBeginsAnewAfterAByte(t *testing.T) {
	w := newWorld(t, 2)
	for range 5 {
		w.silent()
		w.pass(2900 * ms)
		w.want(0, health.Suspect, health.Silence)
		w.alive()
		w.want(0, health.Up, health.NoCause)
	}
	if n := w.b.Bans(0); n != 0 {
		t.Errorf("%d bans", n)
	}
}

// DESIGN.md promise 4: a banned link comes back when it is well.
func TestBanDoublesUpTo30s(t *testing.T) {
	w := newWorld(t, 2)
	w.dial()
	at := time.Duration(0)
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		p := w.answer(false)
		if at += wait * time.Second; p != (probe{at, 0}) {
			t.Fatalf("probe %v, want one of link 0 at %v", p, at)
		}
		w.want(0, health.Banned, health.DialFailed)
	}
	if p := w.answer(true); p != (probe{at + 30*time.Second, 0}) {
		t.Errorf("probe %v", p)
	}
	w.want(0, health.Up, health.NoCause)
	if n := w.b.Bans(0); n != 1 {
		t.Errorf("%d bans: a failed probe is no new one", n)
	}
}

func TestNextBanIsLonger(t *testing.T) {
	w := newWorld(t, 2)
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		w.dial()
		banned := w.now
		w.answer(true)
		if got := w.now.Sub(banned); got != wait*time.Second {
			t.Errorf("banned for %v, want %v s", got, int64(wait))
		}
		w.pass(59 * time.Second)
	}
}

func TestForgivenAfterAMinute(t *testing.T) {
	again := map[string]func(*world){
		"dial failure": (*world).dial,
		"silence":      func(w *world) { w.silent(); w.threeSeconds() },
	}
	for name, fail := range again {
		for _, ticks := range []bool{true, false} { // while all links are up there is no deadline: nobody need call Tick
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, 2)
				w.dial()
				w.answer(false)
				w.answer(false)
				w.answer(true)
				if w.now = w.now.Add(time.Minute); ticks {
					w.tick()
				}
				fail(w)
				banned := w.now
				if w.answer(true); w.now.Sub(banned) != time.Second {
					t.Errorf("banned for %v after a good minute, want 1 s", w.now.Sub(banned))
				}
			})
		}
	}
}

func TestForgivenWhenItComesBack(t *testing.T) {
	w := newWorld(t, 2)
	w.dial()
	w.answer(false)
	w.answer(false)
	w.down()
	w.up()
	w.want(0, health.Up, health.NoCause)
	w.dial()
	banned := w.now
	if w.answer(true); w.now.Sub(banned) != time.Second {
		t.Errorf("a new network is banned for %v, want 1 s", w.now.Sub(banned))
	}
}

func TestLastLinkIsProbedNotBanned(t *testing.T) {
	fail := map[string]func(*world){
		"silence": (*world).silent, "dial failure": (*world).dial, "bind failure": (*world).bind,
	}
	for name, f := range fail {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			f(w)
			s, c := w.b.State(0)
			if s != health.Suspect {
				t.Fatalf("the only link is %v", s)
			}
			first := w.answer(false)
			if first.at > 4*time.Second {
				t.Errorf("first probe after %v", first.at)
			}
			for i := range time.Duration(40) {
				p := w.answer(false)
				if want := first.at + (i+1)*time.Second; p.at != want {
					t.Fatalf("probe %d after %v, want %v", i, p.at, want)
				}
				w.want(0, health.Suspect, c)
			}
			w.answer(true)
			w.want(0, health.Up, health.NoCause)
			if n := w.b.Bans(0); n != 0 {
				t.Errorf("%d bans of the only link", n)
			}
		})
	}
	t.Run("a suspect is banned as soon as another link is there", func(t *testing.T) {
		w := newWorld(t, 1)
		w.silent()
		w.pass(10 * time.Second)
		w.want(0, health.Suspect, health.Silence)
		w.b.Present(w.now, 1, true)
		w.tick()
		w.want(0, health.Banned, health.Silence)
	})
	t.Run("of two silent links one is banned", func(t *testing.T) {
		w := newWorld(t, 2)
		w.silent()
		w.b.Silent(w.now, 1)
		w.threeSeconds()
		w.want(0, health.Banned, health.Silence)
		w.want(1, health.Suspect, health.Silence)
		w.pass(1100 * ms) // nothing is up: both are asked within a second
		w.want(0, health.Probing, health.Silence)
		if len(w.probes) != 2 {
			t.Errorf("probes %v", w.probes)
		}
	})
	t.Run("bans are cut short while no link is up", func(t *testing.T) {
		w := newWorld(t, 2)
		w.dial()
		for range 5 {
			w.answer(false)
		}
		w.b.Silent(w.now, 1)
		if silenced := w.now; w.answer(true).link != 0 || w.now.Sub(silenced) > time.Second {
			t.Errorf("probed after %v", w.now.Sub(silenced))
		}
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a ban ends when the last other link goes away", func(t *testing.T) {
		w := newWorld(t, 3)
		w.dial()
		w.b.Failed(w.now, 1, health.BindFailed)
		w.b.Changes()
		w.b.Present(w.now, 2, false)
		w.want(0, health.Up, health.NoCause)
		w.want(1, health.Up, health.NoCause)
		want := []health.Change{
			{Link: 2, State: health.Down, Cause: health.Gone}, {Link: 0, State: health.Up}, {Link: 1, State: health.Up},
		}
		if got := w.b.Changes(); !slices.Equal(got, want) {
			t.Errorf("changes %v, want %v", got, want)
		}
	})
	t.Run("a ban does not end while a suspect is left", func(t *testing.T) {
		w := newWorld(t, 3)
		w.dial()
		w.b.Silent(w.now, 1)
		w.b.Present(w.now, 2, false)
		w.want(0, health.Banned, health.DialFailed)
		w.want(1, health.Suspect, health.Silence)
	})
}

func TestProbeOutcomeComesLate(t *testing.T) {
	for _, ok := range []bool{true, false} {
		t.Run("the link went down", func(t *testing.T) {
			w := newWorld(t, 2)
			w.run((*world).dial, (*world).second)
			w.want(0, health.Probing, health.DialFailed)
			w.down()
			w.b.Probed(w.now, 0, ok)
			w.want(0, health.Down, health.Gone)
			w.pass(time.Minute)
			if len(w.probes) != 1 {
				t.Errorf("a link that is down is probed: %v", w.probes)
			}
		})
		t.Run("the link went down and came back", func(t *testing.T) {
			w := newWorld(t, 2)
			w.run((*world).dial, (*world).second, (*world).down, (*world).up)
			w.b.Probed(w.now, 0, ok)
			w.want(0, health.Up, health.NoCause)
		})
		t.Run("never, and the link was banned again", func(t *testing.T) {
			w := newWorld(t, 2)
			w.run((*world).dial, (*world).second, (*world).down, (*world).up, (*world).dial)
			w.answer(ok)
			if s, _ := w.b.State(0); (s == health.Up) != ok {
				t.Errorf("after a second probe that ended %v the link is %v", ok, s)
			}
		})
		t.Run("the lonely suspect was banned meanwhile", func(t *testing.T) {
			w := newWorld(t, 1)
			w.silent()
			w.pass(5 * time.Second) // a probe is under way
			if len(w.probes) != 1 {
				t.Fatalf("probes %v", w.probes)
			}
			w.b.Present(w.now, 1, true)
			w.tick()
			w.b.Probed(w.now, 0, ok)
			for len(w.probes) < 2 {
				w.second()
			}
			w.reached()
			w.want(0, health.Up, health.NoCause)
		})
	}
}

func TestNobodyToProbeFor(t *testing.T) {
	w := newWorld(t, 2)
	w.quiet = true
	w.dial()
	if next := w.tick(); !next.IsZero() {
		t.Errorf("deadline %v without a transfer", next)
	}
	w.pass(time.Hour)
	w.want(0, health.Banned, health.DialFailed)
	w.quiet = false
	if w.tick(); len(w.probes) != 1 { // overdue when the next transfer begins
		t.Errorf("probes %v", w.probes)
	}
}

func TestOneProbeAtATime(t *testing.T) {
	w := newWorld(t, 1)
	w.silent()
	w.pass(time.Minute) // the probe gets no answer
	if len(w.probes) != 1 {
		t.Errorf("probes %v", w.probes)
	}
}
