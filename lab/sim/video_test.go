package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// The video of Nikravesh 2018 section 6.6: 10 minutes in segments of 6 s, at nine rates from 0.253 to 10 Mbit/s. The source names
// only the lowest and the highest rate; the others are in geometric progression here.
const (
	videoSegment  = 6 * time.Second
	videoSegments = 100
	videoLevels   = 9
)

func videoRate(level int) float64 { // Mbit/s
	return 0.253 * math.Pow(10/0.253, float64(level)/(videoLevels-1))
}

// The buffer of the player, which chooses the rate only by its buffer (BBA): the lowest rate up to the reservoir, the highest from
// the end of the cushion on, and proportional in between. The source does not describe how its player chooses.
const (
	videoBuffer    = 60 * time.Second
	videoReservoir = 12 * time.Second
	videoCushion   = 48 * time.Second
)

// videoLevel returns the level of the next segment. It stays at the last one until the buffer asks for at least the next one
// above or at most the next one below.
func videoLevel(last int, buffer time.Duration) int {
	part := min(1, max(0, (buffer-videoReservoir).Seconds()/(videoCushion-videoReservoir).Seconds()))
	want := videoRate(0) + part*(videoRate(videoLevels-1)-videoRate(0))
	switch {
	case last < videoLevels-1 && want >= videoRate(last+1):
		for last < videoLevels-1 && want >= videoRate(last+1) {
			last++
		}
	case last > 0 && want <= videoRate(last-1):
		for last > 0 && want <= videoRate(last-1) {
			last--
		}
	}
	return last
}

// video plays the video with one transfer per segment, over kept connections. It returns the mean rate in Mbit/s and the total time
// that playing stalled after its start.
func video(t *testing.T, scheduler string, hint func(scheduler string, s Spec) Spec, links ...Link) (rate float64, stood time.Duration) {
	t.Helper()
	var now, buffer time.Duration
	var kept []kept
	level := 0
	for n := range videoSegments {
		if n > 0 {
			level = videoLevel(level, buffer)
		}
		size := int64(videoRate(level) * mbit * videoSegment.Seconds())
		s := hint(scheduler, Spec{Size: size, First: 64 << 10, Window: size + 1, Seed: uint64(n), Links: slices.Clone(links)})
		s.began, s.kept = now, kept
		r := run(t, scheduler, s)
		rate += videoRate(level) / videoSegments
		if r.Took > buffer && n > 0 {
			stood += r.Took - buffer
		}
		now, buffer, kept = now+r.Took, max(0, buffer-r.Took)+videoSegment, r.kept
		if over := buffer + videoSegment - videoBuffer; over > 0 {
			now, buffer = now+over, buffer-over
		}
	}
	return rate, stood
}

// videoTable writes the row K-video.
func videoTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| Mbit/s | fixed | msplayer | mphttp | mphttp + size, rates | confluence | one link of 10 Mbit/s |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	wifi := func(rate float64) Link { return Link{Rate: rate * mbit, RTT: 25 * ms, Jitter: 2 * ms, H2: true} }
	lte := func(rate float64) Link { return Link{Rate: rate * mbit, RTT: 50 * ms, Jitter: 8 * ms, H2: true} }
	one, stood := video(t, "single", unhinted, wifi(10))
	if stood > 0 {
		t.Errorf("over one link of 10 Mbit/s playing stood still for %v", stood)
	}
	over, behind := map[string][]float64{}, map[string][]float64{} // percent: ahead of msplayer, behind one link
	for _, rates := range [][2]float64{{3, 7}, {5, 5}, {7, 3}} {
		fmt.Fprintf(&b, "| %.0f + %.0f |", rates[0], rates[1])
		ms := 0.
		for _, c := range []struct {
			name string
			hint func(scheduler string, s Spec) Spec
		}{{"fixed", unhinted}, {"msplayer", unhinted}, {"mphttp", unhinted}, {"mphttp", rated}, {"confluence", unhinted}} {
			rate, stood := video(t, c.name, c.hint, wifi(rates[0]), lte(rates[1]))
			fmt.Fprintf(&b, " %.2f Mbit/s", rate)
			if stood > 0 {
				fmt.Fprintf(&b, ", stood for %.1f s", stood.Seconds())
			}
			b.WriteString(" |")
			key := c.name
			if c.name == "msplayer" {
				ms = rate
			}
			if c.name == "mphttp" && len(over["mphttp"]) > len(over["hinted"]) {
				key = "hinted"
			}
			over[key], behind[key] = append(over[key], 100*(rate/max(ms, 1e-9)-1)), append(behind[key], 100*(1-rate/one))
		}
		fmt.Fprintf(&b, " %.2f Mbit/s |\n", one)
	}
	b.WriteString("\n| finding | reported | here | verdict |\n| --- | ---: | ---: | --- |\n")
	line := func(what, reported string, all []float64, ok bool) {
		fmt.Fprintf(&b, "| %s | %s | %.1f to %.1f %% | %s |\n", what, reported, percentile(all, 0), percentile(all, 1), verdict(ok))
	}
	line("mphttp with hints, rate above msplayer's", "up to 44 %", over["hinted"], percentile(over["hinted"], 1) >= 35)
	line("mphttp without, rate above msplayer's", "up to 42 %", over["mphttp"], percentile(over["mphttp"], 1) >= 33)
	line("mphttp with hints, behind MPTCP; here behind one link of 10 Mbit/s", "0.3 to 0.9 %",
		behind["hinted"], percentile(behind["hinted"], 1) <= 3)
	line("mphttp without, behind MPTCP; here behind one link", "0.3 to 3 %", behind["mphttp"], percentile(behind["mphttp"], 1) <= 3)
	fmt.Fprintf(&b, "| confluence, behind one link | | %.1f to %.1f %% | |\n",
		percentile(behind["confluence"], 0), percentile(behind["confluence"], 1))
	return b.String()
}

// TestKept checks that a transfer on a connection of an earlier one saves the handshake and slow start, unless the connection was
// idle.
func TestKept(t *testing.T) {
	s := Spec{Size: 2e6, First: 64 << 10, Window: 2e6 + 1, Links: []Link{{Rate: 10 * mbit, RTT: 50 * ms}}}
	first := run(t, "single", s)
	again := func(pause time.Duration) time.Duration {
		next := s
		next.began, next.kept = first.Took+pause, slices.Clone(first.kept)
		return run(t, "single", next).Took
	}
	soon, late := again(0), again(time.Second)
	t.Log(first.Took, soon, late)
	if first.Took-late < 40*ms || late-soon < 20*ms {
		t.Errorf("%v at first, %v at once, %v after a pause", first.Took, soon, late)
	}
}
