package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// returns holds the times at which a link returned, and how long after each the first byte arrived over it; -1 = none yet.
type returns struct{ at, carried []time.Duration }

// follow records in a scenario how soon links carry bytes again, and the longest time without a byte although a link was up.
func follow(s *Spec) (all []returns, idle *time.Duration) {
	all, idle = make([]returns, len(s.Links)), new(time.Duration)
	for i, l := range s.Links {
		for _, e := range l.Events {
			if e.What == Restore || e.What == Back {
				all[i].at, all[i].carried = append(all[i].at, e.At), append(all[i].carried, -1)
			}
		}
	}
	var last time.Duration
	s.read = func(at time.Duration, link int8, _ int64) {
		for k, back := range all[link].at {
			if at >= back && all[link].carried[k] < 0 {
				all[link].carried[k] = at - back
			}
		}
		dark := time.Duration(0) // time since the last byte during which no link was up
		for t := last; t < at; t += ms {
			if !s.up(t) {
				dark += ms
			}
		}
		*idle = max(*idle, at-last-dark)
		last = at
	}
	return all, idle
}

// up reports whether one of the links is up at a time.
func (s *Spec) up(at time.Duration) bool {
	for _, l := range s.Links {
		if l.up(at) {
			return true
		}
	}
	return false
}

func (l *Link) up(at time.Duration) bool {
	up := !l.Absent
	for _, e := range l.Events {
		if e.At <= at && e.What != SetRate {
			up = e.What == Restore || e.What == Back
		}
	}
	return up
}

// allowed returns the time in which the links carry the object if each is full whenever it is up.
func (s *Spec) allowed() time.Duration {
	left := float64(s.Size)
	for at := time.Duration(0); ; at += ms {
		for _, l := range s.Links {
			if l.up(at) {
				left -= l.Rate / 1000
			}
		}
		if left <= 0 {
			return at
		}
	}
}

// TestLinkReturnsAtOnce runs row 6 of the benchmark with a link that is back after 2 to 4 s.
func TestLinkReturnsAtOnce(t *testing.T) {
	for away := 2000 * ms; away <= 4000*ms; away += 37 * ms {
		for _, ends := range [][2]What{{Blackhole, Restore}, {Gone, Back}} {
			s := Spec{Size: 40e6, Scheduler: schedule.Default, Window: defaultWindow, First: 128 << 10, Links: []Link{
				{Rate: 20 * mbit, RTT: 20 * ms, Events: []LinkEvent{{At: 2 * time.Second, What: ends[0]}, {At: 2*time.Second + away, What: ends[1]}}},
				{Rate: 20 * mbit, RTT: 40 * ms},
			}}
			seen, _ := follow(&s)
			r, err := Run(s)
			if err != nil {
				t.Fatal(err)
			}
			if d := seen[0].carried[0]; d < 0 || d > 350*ms {
				t.Errorf("away for %v (event %d), the link carries bytes again after %v", away, ends[0], d)
			}
			if r.Pause > 450*ms {
				t.Errorf("away for %v (event %d), a pause of %v", away, ends[0], r.Pause)
			}
		}
	}
}

// TestFlappingLinks runs a transfer in which each link is gone five times for 0.6 s. The gap to 100 % is mostly slow start after
// each return.
func TestFlappingLinks(t *testing.T) {
	for _, ends := range [][2]What{{Blackhole, Restore}, {Gone, Back}} {
		for shift := time.Duration(0); shift < 200*ms; shift += 130 * ms {
			s := Spec{Size: 250e6, Scheduler: schedule.Default, Window: defaultWindow, First: 128 << 10, Links: []Link{
				{Rate: 79 * mbit, RTT: 20 * ms}, {Rate: 61 * mbit, RTT: 40 * ms},
			}}
			for i := range s.Links {
				l := &s.Links[i]
				for k := range time.Duration(5) {
					at := time.Second + shift + time.Duration(i)*1400*ms + k*2800*ms
					l.Events = append(l.Events, LinkEvent{At: at, What: ends[0]}, LinkEvent{At: at + 600*ms, What: ends[1]})
				}
			}
			seen, idle := follow(&s)
			r, err := Run(s)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("event %d, shift %v", ends[0], shift)
			if share := s.allowed().Seconds() / r.Took.Seconds(); share < 0.935 {
				t.Errorf("%s: %.1f %% of what the links allow", name, 100*share)
			}
			if r.Pause > 450*ms || *idle > 50*ms {
				t.Errorf("%s: a pause of %v, all links idle for %v", name, r.Pause, *idle)
			}
			if r.Waste > s.Size/33 {
				t.Errorf("%s: %d bytes of waste", name, r.Waste)
			}
			for link, all := range seen {
				for i, d := range all.carried {
					if d < 0 || d > 100*ms {
						t.Errorf("%s: link %d carries bytes %v after it was back at %v", name, link, d, all.at[i])
					}
				}
			}
		}
	}
}
