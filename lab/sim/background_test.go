package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// page returns a page of 2.2 MB over a new connection: DNS, TCP and TLS, the HTML, then the resources that it refers to, then those
// that its script requests. It needs no processor time except 60 ms after each answer, so that a queue delays it more than pages in
// a browser.
func page(link int8, at time.Duration) Beside {
	return Beside{Link: link, At: at, Trips: 3, Answers: []int64{30e3, 210e3, 1e6, 1e6}, Think: 60 * ms}
}

// TestBackground checks that, beside a background download of 250 MB, pages that load over its links every 2.2 s take at most 8 %
// longer than alone in the median, and downloads of 4 s at most 5 %. If the interfaces' counters are unknown, the limits are 15 %
// (25 % on links so fast that pages consist of round trips) and 12 %. The download takes four fifths of the rate that the pages
// leave, and the full rate of links without other traffic. TestYield in lab/e2e measures the same with a browser.
func TestBackground(t *testing.T) {
	for _, c := range []struct {
		rates  [2]float64 // Mbit/s
		jitter time.Duration
		pages  float64 // limit without counters
	}{{[2]float64{16, 8}, 0, 1.15}, {[2]float64{40, 20}, 0, 1.15}, {[2]float64{40, 20}, 3 * ms, 1.15}, {[2]float64{80, 40}, 0, 1.25}} {
		for _, counted := range []bool{false, true} {
			pages, others := c.pages, 1.12
			if counted {
				pages, others = 1.08, 1.05
			}
			var links []Link
			for i := range 4 { // the last two equal the others and have no background download
				links = append(links, Link{Rate: c.rates[i%2] * mbit, RTT: []time.Duration{20 * ms, 50 * ms}[i%2], Jitter: c.jitter, Absent: i > 1})
			}
			beside := func(background bool, all ...Beside) Result {
				r, err := Run(Spec{
					Size: 250e6, First: 128 << 10, Window: 64 << 20, Scheduler: schedule.Default, Links: links, Background: background, Beside: all, Counted: counted,
				})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			download := func(link int8, at time.Duration) Beside {
				return Beside{Link: link, At: at, Trips: 1, Answers: []int64{int64(4 * links[link].Rate)}}
			}
			usual := beside(false)
			lone := beside(true, page(2, 0), page(3, 0), download(2, 4*time.Second), download(3, 4*time.Second))
			var all []Beside
			for i := range 6 {
				all = append(all, page(int8(i%2), 2*time.Second+time.Duration(i)*2200*ms))
			}
			paged := beside(true, all...)
			var ratios []float64
			for i, took := range paged.Beside {
				ratios = append(ratios, took.Seconds()/lone.Beside[i%2].Seconds())
			}
			slices.Sort(ratios)
			other := beside(true, download(0, 2*time.Second), download(1, 7*time.Second))
			downloads := []float64{other.Beside[0].Seconds() / lone.Beside[2].Seconds(), other.Beside[1].Seconds() / lone.Beside[3].Seconds()}
			rate := 250e6 / usual.Took.Seconds()
			alone, rest := usual.Took.Seconds()/lone.Took.Seconds(), 250e6/(rate*paged.Took.Seconds()-6*2.24e6)
			middle := (ratios[2] + ratios[3]) / 2
			t.Logf("%v Mbit/s, jitter %v, counted %v: pages %.2f times (%.2f), other downloads %.2f; %.2f of the rest, alone %.2f", c.rates, c.jitter, counted, middle, ratios, downloads, rest, alone)
			if middle > pages || slices.Max(downloads) > others || rest < 0.8 || alone < 0.9 {
				t.Errorf("%v Mbit/s: it does not yield, or too much", c.rates)
			}
		}
	}
}
