package literature_test

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/lab/literature"
)

// The links of the example of Skjolden 2019 section 4.3.5 (see formula_test.go of package schedule).
func paperLinks() []schedule.Link {
	return []schedule.Link{link(1600*kb, 30_000*kb, 20*ms), link(400*kb, 30_000*kb, 40*ms)}
}

func TestAlg3(t *testing.T) {
	t.Run("[D] 4.3.5: 3333 and 1200 KB", func(t *testing.T) {
		v := newView(250_000*kb, huge, paperLinks()...)
		ds, last := drain(t, &literature.Alg3{}, v)
		sameDecisions(t, ds,
			fetch(0, rng(0, 3_333_333), schedule.Share), fetch(1, rng(3_333_333, 4_533_333), schedule.Floor))
		expect(t, last, schedule.Decision{})
	})
	t.Run("a link faster than its constant: the printed formula has no cap of P/n", func(t *testing.T) {
		known := []float64{800 * kb, 200 * kb} // half of the links' rates
		want := rng(0, 200_000*kb)             // (250,000/2) (2000/1000) (1600/2000) KB
		v := newView(250_000*kb, huge, paperLinks()...)
		expect(t, (&literature.Alg2{Bandwidth: known}).Next(start, v), fetch(0, want, schedule.Share))
		expect(t, (&literature.Alg3{Bandwidth: known}).Next(start, v), fetch(0, want, schedule.Share))
	})
	t.Run("sizes follow the whole object", func(t *testing.T) {
		v := newView(250_000*kb, huge, paperLinks()...)
		take(v, rng(0, 200_000*kb))
		v.Links[1].CanAsk = false
		expect(t, (&literature.Alg3{}).Next(start, v),
			fetch(0, rng(200_000*kb, 203_333_333), schedule.Share))
	})
	t.Run("padding 0.3: 1420 KB", func(t *testing.T) {
		v := newView(250_000*kb, huge, paperLinks()...)
		expect(t, (&literature.Alg3{Padding: 0.3}).Next(start, v), fetch(0, rng(0, 1_420_000), schedule.Share))
	})
	t.Run("the next request leaves at 60 %, not earlier, one ahead", func(t *testing.T) {
		for cursor, asks := range map[int64]bool{0: false, 599_999: false, 600_000: true, 999_999: true} {
			v := newView(250_000*kb, huge, link(1600*kb, 30_000*kb, 20*ms))
			ask(v, 0, rng(0, 1_000_000), cursor)
			ds, _ := drain(t, &literature.Alg3{}, v)
			if (len(ds) == 1) != asks || len(ds) > 1 {
				t.Errorf("at %d of 1,000,000: %d requests", cursor, len(ds))
			}
		}
	})
	t.Run("two at a time", func(t *testing.T) {
		v := newView(250_000*kb, huge, link(1600*kb, 30_000*kb, 20*ms))
		ask(v, 0, rng(0, 1_000_000), 500_000)
		ask(v, 0, rng(1_000_000, 2_000_000), 1_900_000) // on a second connection
		if d := (&literature.Alg3{}).Next(start, v); d.Do != schedule.Wait {
			t.Error(show(d))
		}
	})
	t.Run("the last range is what is left", func(t *testing.T) {
		v := newView(250_000*kb, huge, paperLinks()...)
		take(v, rng(0, 248_000*kb))
		expect(t, (&literature.Alg3{}).Next(start, v), fetch(0, rng(248_000*kb, 250_000*kb), schedule.Rest))
	})
	t.Run("nothing corrects the end", func(t *testing.T) {
		v := newView(20_000*kb, huge, paperLinks()...)
		ask(v, 1, v.Object, 0)
		expect(t, (&literature.Alg3{}).Next(start, v), schedule.Decision{})
	})
	t.Run("a link that would run dry sooner waits for 60 % all the same, and for no time", func(t *testing.T) {
		for size, cursor := range map[int64]int64{300_000: 100_000, 10 * mb: 5 * mb} {
			v := newView(100*mb, huge, link(1*mb, 1*mb, 150*ms))
			ask(v, 0, rng(0, size), cursor)
			expect(t, (&literature.Alg3{}).Next(start, v), schedule.Decision{})
		}
	})
}
