package lanes

import (
	"testing"
	"time"
)

// TestFallingRate: when a link's rate falls, the other lane does not wait idly for the bytes queued there at the end.
func TestFallingRate(t *testing.T) {
	const size = 6_000_000
	for _, fall := range []float64{1, 0.95, 0.9} { // factor on the rate every 50 ms
		w := newWorld(t, 64<<20)
		w.add(2.5e6, 10*time.Millisecond)
		lte := w.lanes[w.add(3e6, 20*time.Millisecond)]
		carried, bound, steps := 0.0, 0, 0
		took := w.download(size, func() {
			if steps++; steps%50 == 0 {
				lte[1].rate = max(fall*lte[1].rate, 1e5)
			}
			if carried += (2.5e6 + lte[1].rate) / 1000; carried < size {
				bound = steps
			}
		})
		copied := w.ends[1].streams[1].copied
		t.Logf("to %.0f %% in 50 ms: %s, of which the links need %d ms; %d bytes twice", 100*fall, took, bound, copied)
		if late := took - time.Duration(bound)*time.Millisecond; late > 300*time.Millisecond {
			t.Errorf("to %.0f %% in 50 ms: %s late", 100*fall, late)
		}
		if copied > copyFree+size/200 {
			t.Errorf("to %.0f %% in 50 ms: %d bytes were sent twice", 100*fall, copied)
		}
	}
}

// TestPause: when a link goes dark during a transfer, the reader waits for less than a quarter of a second, and once.
func TestPause(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(2.5e6, 10*time.Millisecond)
	dead := w.add(2.5e6, 10*time.Millisecond)
	steps, longest := 0, 0
	waits, last := 0, uint64(0)
	w.download(8_000_000, func() {
		if steps++; steps == 1000 {
			w.dark[dead] = true
		}
		for _, s := range w.ends[0].streams {
			if waits++; s.have != last {
				last, waits = s.have, 0
			}
		}
		if steps > 200 {
			longest = max(longest, waits)
		}
	})
	t.Logf("longest pause %d ms", longest)
	if longest > 250 {
		t.Errorf("the reader waited for %d ms", longest)
	}
}

// TestNobodyLooked: a lane that was not observed for some time, because the machine was busy, is not late.
func TestNobodyLooked(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(2.5e6, 10*time.Millisecond)
	w.add(2.5e6, 10*time.Millisecond)
	steps := 0
	w.download(4_000_000, func() {
		if steps++; steps != 500 {
			return
		}
		m, now := w.ends[1], w.now.Add(2*lateAfter)
		p := w.lanes[1][1].path()
		p.Progress++
		m.Observe(now, 1, p)
		m.Next(now, 1, nil)
		if n := m.streams[1].copied; n > 0 {
			t.Errorf("%d bytes were sent twice", n)
		}
	})
}

// TestLateAcknowledgment: frames that a silent lane delivered earlier do not show that it works again.
func TestLateAcknowledgment(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(2.5e6, 10*time.Millisecond)
	dead := w.add(2.5e6, 10*time.Millisecond)
	steps, since := 0, 0
	w.download(8_000_000, func() {
		if steps++; steps == 500 {
			w.dark[dead] = true
		}
		switch l := w.ends[1].lane(dead); {
		case l.suspect:
			since++
		case since > 0:
			t.Fatalf("after %d ms a dark lane is trusted again", since)
		}
	})
	if since == 0 {
		t.Error("no lane was suspect")
	}
}

// TestCopyOfDeadLane: data that two lanes owe is not sent a third time when one of them dies.
func TestCopyOfDeadLane(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(2.5e6, 10*time.Millisecond)
	dead := w.add(2.5e6, 10*time.Millisecond)
	steps := 0
	for i := 0; i < 2; i++ {
		w.download(2_000_000, func() {
			if steps++; steps == 300 {
				w.dark[dead] = true
			}
			m := w.ends[1]
			if steps == 490 { // copies of what it owes are on their way
				copied := 0
				for _, it := range m.lane(dead).sent {
					if it.copied {
						copied++
					}
				}
				if copied == 0 {
					t.Error("nothing was copied")
				}
				owed := len(m.lane(dead).sent)
				w.kill(dead)
				if n := len(m.again); n > owed-copied {
					t.Errorf("%d of %d frames are sent again, of which %d had been copied", n, owed, copied)
				}
			}
		})
	}
}

// TestRestart: a lane that has rested measures the rate of its link again, once, and only if there is much to send.
func TestRestart(t *testing.T) {
	w := newWorld(t, 64<<20)
	id := w.add(2.5e6, 10*time.Millisecond)
	restarts := func(size int) (n int) {
		w.download(size, func() {
			if w.ends[1].Restart(id) {
				n++
			}
		})
		return n
	}
	rest := func(d time.Duration) {
		for range d.Milliseconds() {
			w.step()
		}
	}
	if n := restarts(1_000_000); n != 0 {
		t.Errorf("a new lane: %d restarts", n)
	}
	rest(50 * time.Millisecond)
	if n := restarts(1_000_000); n != 0 {
		t.Errorf("after a short rest: %d restarts", n)
	}
	rest(time.Second)
	if n := restarts(4000); n != 0 {
		t.Errorf("for a small message: %d restarts", n)
	}
	rest(time.Second)
	if n := restarts(1_000_000); n != 1 {
		t.Errorf("after a rest: %d restarts", n)
	}
}

// TestMessagesFirst: a message does not wait behind data that is sent again for a lane that has died.
func TestMessagesFirst(t *testing.T) {
	w := newWorld(t, 64<<20)
	w.add(1e6, 10*time.Millisecond)
	dead := w.add(4e6, 10*time.Millisecond)
	chat, _ := w.ends[0].Open(w.now, "host:22")
	steps, came := 0, 0
	w.download(3_000_000, func() {
		m := w.ends[1]
		switch steps++; steps {
		case 100:
			m.Connect(w.now, chat)
		case 400:
			w.kill(dead)
			if len(m.again) < 5 {
				t.Fatalf("only %d frames are sent again", len(m.again))
			}
			m.Write(w.now, chat, make([]byte, 64))
		}
		if n, _ := w.ends[0].Read(w.now, chat, w.buf[:]); n > 0 {
			came = steps - 400
		}
	})
	t.Logf("after %d ms", came)
	if came <= 0 || came > 70 {
		t.Errorf("the message came after %d ms", came)
	}
}
