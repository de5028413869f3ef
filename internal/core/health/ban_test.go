package health_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

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

// a banned link comes back when it is well.
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
		t.Errorf("%d bans: a failed probe is not a new one", n)
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
		for _, ticks := range []bool{true, false} { // while all links are up there is no deadline, so Tick need not be called
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
		w.pass(1100 * ms) // nothing is up: both are probed within a second
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
			w.b.Probed(w.now, w.last(), answered(ok))
			w.want(0, health.Down, health.Gone)
			w.pass(time.Minute)
			if len(w.probes) != 1 {
				t.Errorf("a link that is down is probed: %v", w.probes)
			}
		})
		t.Run("the link went down and came back", func(t *testing.T) {
			w := newWorld(t, 2)
			w.run((*world).dial, (*world).second, (*world).down, (*world).up)
			w.b.Probed(w.now, w.last(), answered(ok))
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
			w.want(0, health.Banned, health.Silence)
			w.b.Probed(w.now, w.last(), answered(ok))
			if !ok {
				w.want(0, health.Banned, health.Silence)
				w.answer(true)
			}
			w.want(0, health.Up, health.NoCause)
		})
	}
}

func TestNobodyToProbeFor(t *testing.T) {
	w := newWorld(t, 2)
	w.pace = 0
	w.dial()
	if next := w.tick(); !next.IsZero() {
		t.Errorf("deadline %v without a transfer", next)
	}
	w.pass(time.Hour)
	w.want(0, health.Banned, health.DialFailed)
	w.pace = health.Seldom
	if w.tick(); len(w.probes) != 1 { // overdue when the next transfer begins
		t.Errorf("probes %v", w.probes)
	}
}

func TestOneProbeAtATime(t *testing.T) {
	w := newWorld(t, 1)
	w.silent()
	w.pass(time.Minute) // the probe is not answered
	if len(w.probes) != 1 {
		t.Errorf("probes %v", w.probes)
	}
}
