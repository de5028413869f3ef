package literature_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/lab/literature"
)

// The vectors: [D] printed in the document that the package comment names, [C] computed from its formulas.

func TestAlg1(t *testing.T) {
	t.Run("[D] 2.1: 1600 and 800 KBps, U 4000 KB: 2666 and 1333 KB", func(t *testing.T) {
		v := newView(250*mb, huge, link(1600*kb, 1600*kb, 20*ms), link(800*kb, 800*kb, 20*ms))
		ds, _ := drain(t, &literature.Alg1{Cap: 4000 * kb}, v)
		sameDecisions(t, ds, fetch(0, rng(0, 2_666_666), schedule.Share), fetch(1, rng(2_666_666, 3_999_999), schedule.Share))
	})
	t.Run("4.2.2: the next request at 60 %", func(t *testing.T) {
		v := newView(250*mb, huge, link(1*mb, 1*mb, 20*ms))
		a := ask(v, 0, rng(0, 1*mb), 599_999)
		s := &literature.Alg1{Cap: 1 * mb}
		expect(t, s.Next(start, v), schedule.Decision{})
		a.Cursor = 600_000
		expect(t, s.Next(start, v), fetch(0, rng(1*mb, 2*mb), schedule.Share))
	})
}

func TestAlg2(t *testing.T) {
	// [D] 2.1, example 1: P 250,000 KB, sum bw 60,000 KBps, 1600 and 800 KBps: 3333 and 1666 KB.
	v := newView(250_000*kb, huge, link(1600*kb, 0, 20*ms), link(800*kb, 0, 20*ms))
	ds, _ := drain(t, &literature.Alg2{Bandwidth: []float64{30_000 * kb, 30_000 * kb}}, v)
	sameDecisions(t, ds, fetch(0, rng(0, 3_333_333), schedule.Share), fetch(1, rng(3_333_333, 5_000_000), schedule.Share))
}

func TestFixed(t *testing.T) {
	v := newView(1*mb, huge, link(1*mb, 1*mb, 20*ms), link(2*mb, 2*mb, 20*ms))
	ds, _ := drain(t, &literature.Fixed{Size: 128 * kb}, v)
	sameDecisions(t, ds, fetch(0, rng(0, 128_000), schedule.Piece), fetch(1, rng(128_000, 256_000), schedule.Piece))
	v.Links[1].Running, v.Links[1].Asked, v.Attempts = 0, 0, v.Attempts[:1]
	expect(t, (&literature.Fixed{Size: 128 * kb}).Next(start, v), fetch(1, rng(256_000, 384_000), schedule.Piece))
}

func TestMSPlayer(t *testing.T) {
	const base = 256 * kib
	at := func(s *literature.MSPlayer, slow, fast float64) (n [2]int64) {
		v := newView(100*mb, huge, link(slow, slow, 20*ms), link(fast, fast, 20*ms))
		for _, d := range []schedule.Decision{s.Next(start, v)} {
			apply(v, d)
			n[d.Link] = d.Range.Len()
		}
		d := s.Next(start, v)
		n[d.Link] = d.Range.Len()
		return n
	}
	t.Run("the faster link fetches as many times more, rounded up", func(t *testing.T) {
		if n := at(&literature.MSPlayer{Ratio: true}, 1*mb, 2.5*mb); n != [2]int64{base, 3 * base} {
			t.Errorf("%v", n)
		}
	})
	t.Run("the base doubles and halves with the slowest link", func(t *testing.T) {
		s := &literature.MSPlayer{}
		for i, c := range []struct {
			rate float64
			want int64
		}{{1 * mb, base}, {1.04 * mb, base}, {1.2 * mb, 2 * base}, {1.2 * mb, 2 * base}, {1 * mb, base}, {0.5 * mb, base / 2}} {
			if n := at(s, c.rate, 10*mb); n[0] != c.want {
				t.Errorf("step %d, %.2f MB/s: %d, want %d", i, c.rate/mb, n[0], c.want)
			}
		}
	})
}

func TestSubsegments(t *testing.T) {
	t.Run("[D] 2.4: block 200 KB, 3:2: 120 and 80 KB", func(t *testing.T) {
		n, left := literature.Draw(200*kb, 0, 3./5)
		if n != 120*kb || left != 80*kb {
			t.Errorf("%d, %d left", n, left)
		}
		if n, left = literature.Draw(200*kb, left, 2./5); n != 80*kb || left != 0 {
			t.Errorf("%d, %d left", n, left)
		}
	})
	t.Run("[C] 2.4: a sliver is left when shares change", func(t *testing.T) {
		if n, left := literature.Draw(200*kb, 80*kb, 0.3); n != 60*kb || left != 20*kb {
			t.Errorf("%d, %d left", n, left)
		}
	})
	t.Run("[D] 2.4: d 110 ms, 300 KB/s: S_min 33 KB (printed 30)", func(t *testing.T) {
		if n := literature.Least(300*kb, 110*ms); n != 33*kb {
			t.Errorf("%d", n)
		}
	})
	t.Run("4.1.2: interleaved start, two on each link", func(t *testing.T) {
		v := newView(10*mb, huge, link(1*mb, 1*mb, 0), link(1*mb, 1*mb, 0))
		ds, _ := drain(t, &literature.Subsegments{}, v)
		var links []int8
		for _, d := range ds {
			links = append(links, d.Link)
		}
		if len(links) != 4 || links[0] == links[1] || links[1] == links[2] || links[2] == links[3] {
			t.Errorf("consecutive pieces on links %v", links)
		}
	})
	t.Run("[C] 2.4: a 95:5 link gets S_min, not a sliver; as published it gets 10 KB", func(t *testing.T) {
		for _, c := range []struct {
			literal bool
			want    int64
		}{{true, 10 * kb}, {false, 25 * kb}} {
			v := newView(10*mb, huge, link(9.5*mb, 9.5*mb, 0), link(0.5*mb, 0.5*mb, 100*ms))
			v.Links[0].CanAsk = false
			s := &literature.Subsegments{Dynamic: true, Literal: c.literal}
			if d := s.Next(start, v); d.Range.Len() != c.want {
				t.Errorf("literal %v: %d", c.literal, d.Range.Len())
			}
		}
	})
}

func TestProbe(t *testing.T) {
	v := newView(3*mb, huge, link(0, 0, 0), link(0, 0, 0))
	s := &literature.Probe{}
	ds, last := drain(t, s, v)
	sameDecisions(t, ds, fetch(0, rng(0, 100*kb), schedule.First), fetch(1, rng(100*kb, 200*kb), schedule.First))
	expect(t, last, schedule.Decision{})
	v.Attempts, v.Links[0] = v.Attempts[1:], link(3*mb, 3*mb, 0)
	expect(t, s.Next(start, v), schedule.Decision{Rule: schedule.Measuring})
	v.Attempts = nil
	v.Links[0], v.Links[1] = link(3*mb, 3*mb, 0), link(1*mb, 1*mb, 0)
	ds, _ = drain(t, s, v)
	sameDecisions(t, ds, fetch(0, rng(200*kb, 2300*kb), schedule.WholeRange), fetch(1, rng(2300*kb, 3000*kb), schedule.WholeRange))
}

// TestPartition checks [D] 2.6: for constant rates D_i = D B_i / (B_i + B_j), so that both end together.
func TestPartition(t *testing.T) {
	v := newView(5*mb, huge, link(0, 0, 0), link(0, 0, 0))
	s := &literature.Partition{Weights: []float64{8, 2}}
	ds, _ := drain(t, s, v)
	sameDecisions(t, ds, fetch(0, rng(0, 4*mb), schedule.WholeRange), fetch(1, rng(4*mb, 5*mb), schedule.WholeRange))
	t.Run("the link that is lost", func(t *testing.T) {
		v.Free, v.Attempts = []segment.Range{rng(4*mb, 5*mb)}, nil
		v.Links[0], v.Links[1] = link(1, 1, 0), schedule.Link{}
		expect(t, s.Next(start, v), fetch(0, rng(4*mb, 5*mb), schedule.WholeRange))
	})
}

func TestMPHTTP(t *testing.T) {
	t.Run("2.2: [C] D 2,000,000, 10 and 5 Mbps, RTT 26 and 60 ms: 1,347,500 and 652,500", func(t *testing.T) {
		v := newView(2*mb, huge, link(10*mbit, 10*mbit, 26*ms), link(5*mbit, 5*mbit, 60*ms))
		d := (&literature.MPHTTP{}).Next(start, v)
		expect(t, d, fetch(0, rng(0, 1_347_500), schedule.Half))
		apply(v, d)
		v.Links[0].CanAsk = false
		d = (&literature.MPHTTP{}).Next(start, v)
		if d.Link != 1 || d.Range.End != 2*mb {
			t.Errorf("%s", show(d))
		}
	})
	t.Run("halves while nothing is known; the second link works at the rear", func(t *testing.T) {
		v := newView(2*mb, huge, link(0, 0, 0), link(0, 0, 0))
		ask(v, 0, rng(0, 100*kb), 0)
		expect(t, (&literature.MPHTTP{}).Next(start, v), fetch(1, rng(1050*kb, 2*mb), schedule.Half))
	})
	t.Run("2.2: the fast link takes the tail, the offload form of equation 6.1", func(t *testing.T) {
		v := newView(2*mb, huge, link(10*mbit, 10*mbit, 300*ms), link(5*mbit, 5*mbit, 60*ms))
		ask(v, 1, rng(1*mb, 2*mb), 1500*kb)
		take(v, v.Object)
		d := (&literature.MPHTTP{}).Next(start, v)
		if d.Rule != schedule.Steal || d.Link != 0 || d.Range != rng(2*mb-208_333, 2*mb) {
			t.Errorf("%s", show(d))
		}
	})
	t.Run("2.2: [C] D 150,000: do not offload", func(t *testing.T) {
		v := newView(2*mb, huge, link(10*mbit, 10*mbit, 300*ms), link(5*mbit, 5*mbit, 60*ms))
		ask(v, 1, rng(1*mb, 2*mb), 1850*kb)
		take(v, v.Object)
		expect(t, (&literature.MPHTTP{}).Next(start, v), schedule.Decision{})
	})
}

func TestDEMS(t *testing.T) {
	v := newView(10*mb, huge, link(5*mb, 5*mb, 0), link(1*mb, 1*mb, 0), link(2*mb, 2*mb, 0))
	for _, want := range []schedule.Decision{
		fetch(0, rng(0, 500*kb), schedule.Piece), fetch(1, rng(9_900*kb, 10*mb), schedule.Piece),
		fetch(2, rng(500*kb, 700*kb), schedule.Piece),
	} {
		d := (&literature.DEMS{}).Next(start, v)
		expect(t, d, want)
		apply(v, d)
	}
	t.Run("in a window the rear is its end", func(t *testing.T) {
		v := newView(10*mb, 2*mb, link(5*mb, 5*mb, 0), link(1*mb, 1*mb, 0))
		v.Links[0].CanAsk = false
		expect(t, (&literature.DEMS{}).Next(start, v), fetch(1, rng(1_900*kb, 2*mb), schedule.Piece))
	})
}

// TestSwitching checks [D] 2.6: no data for 1212 ms on a change to Wi-Fi.
func TestSwitching(t *testing.T) {
	best := int8(1)
	s := &literature.Switching{
		Best: func(time.Time) int8 { return best },
		Cost: func(_, to int8) time.Duration { return 1212 * ms },
	}
	v := newView(10*mb, huge, link(1*mb, 1*mb, 0), link(2*mb, 2*mb, 0))
	expect(t, s.Next(start, v), fetch(1, rng(0, 200*kb), schedule.Piece))
	best = 0
	if d := s.Next(start.Add(time.Second), v); d.Do != schedule.Wait || d.Rule != schedule.OtherLink {
		t.Errorf("%s", show(d))
	}
	if d := s.Next(start.Add(time.Second+1211*ms), v); d.Do != schedule.Wait {
		t.Errorf("%s", show(d))
	}
	if d := s.Next(start.Add(time.Second+1212*ms), v); d.Do != schedule.Fetch || d.Link != 0 {
		t.Errorf("%s", show(d))
	}
}
