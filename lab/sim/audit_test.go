package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestSameLog checks that the same Spec gives the same event log.
func TestSameLog(t *testing.T) {
	for seed := range uint64(50) {
		var logs [2][]string
		for i := range logs {
			s := random(seed)
			s.Log = func(at time.Duration, what string) { logs[i] = append(logs[i], at.String()+" "+what) }
			r, err := Run(s)
			logs[i] = append(logs[i], fmt.Sprint(r, err))
		}
		if !slices.Equal(logs[0], logs[1]) {
			t.Fatalf("seed %d: the second run differs", seed)
		}
	}
}

// TestWaste checks that, on links without faults, second copies come only from moving tails.
func TestWaste(t *testing.T) {
	for _, first := range []int64{0, 256 << 10} {
		for name, links := range map[string][]Link{
			"high speed": hs(),
			"low speed":  {{Rate: 8 * mbit, RTT: 10e6}, {Rate: 66 * mbit, RTT: 45e6, Ramp: 25e8}},
			"four":       {{Rate: 20 * mbit, RTT: 10e6}, {Rate: 20 * mbit, RTT: 20e6}, {Rate: 5 * mbit, RTT: 80e6}, {Rate: 40 * mbit, RTT: 40e6}},
		} {
			r, err := Run(Spec{Size: 20e6, Links: links, Scheduler: "alg3", Window: 12 << 20, First: first})
			if err != nil {
				t.Fatal(err)
			}
			if r.Waste > 20e6*15/1000 { // the part of the client's own GET that is in flight and in the queue is read and discarded
				t.Errorf("%s, first %d: %d bytes of waste", name, first, r.Waste)
			}
		}
	}
}

// TestBlackhole drops all bytes on one of two equal links from 2 s to 5 s.
func TestBlackhole(t *testing.T) {
	for _, off := range []What{Blackhole, Gone} {
		links := []Link{{Rate: 20 * mbit, RTT: 20e6}, {Rate: 20 * mbit, RTT: 20e6}}
		links[1].Events = []LinkEvent{{At: 2 * time.Second, What: off}, {At: 5 * time.Second, What: off + 1}}
		r, err := Run(Spec{Size: 40e6, Links: links, Scheduler: "alg3", Window: 12 << 20, First: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Pause > time.Second {
			t.Errorf("event %d: pause of %v", off, r.Pause)
		}
		if r.Waste > 1e6 { // 200 ms of goodput outstanding, at most twice
			t.Errorf("event %d: %d bytes of waste", off, r.Waste)
		}
		// 5 MB in the first 2 s, and again a share of the bytes from 5 s on, plus the probe's delay.
		if r.Bytes[1] < 10e6 {
			t.Errorf("event %d: only %d bytes over the link that came back", off, r.Bytes[1])
		}
	}
}

// TestBothDark checks promise 2: after both links were gone for 5 s, bytes flow within 3 s of their return.
func TestBothDark(t *testing.T) {
	for _, off := range []What{Blackhole, Gone} {
		dark := []LinkEvent{{At: 2 * time.Second, What: off}, {At: 7 * time.Second, What: off + 1}}
		links := []Link{{Rate: 20 * mbit, RTT: 20e6, Events: dark}, {Rate: 20 * mbit, RTT: 20e6, Events: dark}}
		r, err := Run(Spec{Size: 40e6, Links: links, Scheduler: "alg3", Window: 12 << 20, First: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Pause > 8*time.Second {
			t.Errorf("event %d: pause of %v", off, r.Pause)
		}
	}
}
