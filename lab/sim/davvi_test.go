package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/literature"
)

// segmentTime is the length of a segment of Evensen's clip; startup is the time from the first segment until playing begins.
const (
	segmentTime = 2 * time.Second
	startup     = 2 * time.Second
)

// levelRates lists the lowest, mean and highest rates of the clip's segments in kbit/s: low, medium, high, super (Evensen 2011
// table 4.1).
var levelRates = [4][3]float64{{524, 746, 1057}, {866, 1300, 1923}, {1491, 2142, 3293}, {2212, 3010, 4884}}

const super = len(levelRates) - 1

// clip returns random sizes in bytes of segments at each level. The clip itself is not published: here a scene is equally demanding
// at all levels, and the sizes are spread so that lowest, mean and highest match the table.
func clip(seed uint64, segments int) (sizes [][4]int64) {
	r := rand.New(rand.NewPCG(seed, 19))
	for range segments {
		u, s := r.Float64(), [4]int64{}
		for k, l := range levelRates {
			// the mean of u^n is 1/(n+1)
			n := (l[2]-l[0])/(l[1]-l[0]) - 1
			s[k] = int64((l[0] + (l[2]-l[0])*math.Pow(u, n)) * 1e3 / 8 * segmentTime.Seconds())
		}
		sizes = append(sizes, s)
	}
	return sizes
}

// davvi is the streaming client of Evensen 2011 sections 4.2.2 to 4.5 (Algorithms 1 to 3), on demand: segments are divided into
// subsegments, static ones or dynamic ones; each link has one running subsegment and one request behind it, across the ends of
// segments. It has its own model, since package transfer fetches objects whose size does not depend on how they arrive: links are
// serial queues with a round trip, and congestion windows never limit them.
type davvi struct {
	clip    [][4]int64
	buffer  int  // segments that may be held or requested, in addition to the one that plays
	dynamic bool // shares of blocks instead of pieces of 100 kB
	rng     *rand.Rand

	now    time.Duration
	seq    uint64
	events queue
	links  []*davviLink

	quality  int   // level of the next segment to open; chosen when a segment is complete
	opened   int   // segments
	unasked  int64 // bytes of the newest segment not yet requested
	block    int64 // bytes left of a block of Algorithm 3
	missing  []int64
	complete []bool
	underWay int64 // bytes requested that have not arrived
	playing  int   // segment, -1 = none yet
	playEnds time.Duration
	started  bool // the startup delay has begun
	stalled  bool
	due      time.Duration // when the awaited segment should have played
	res      played
}

type davviLink struct {
	*simLink
	asked int           // requests whose answers have not ended
	free  time.Duration // when the last running answer ends at the client
	rate  float64       // mean of the last average and the newest sample, bytes per second
}

// played is the result for a viewer.
type played struct {
	levels [4]int // number of segments at each level
	misses int    // segments that had not arrived when they should have played
	worst  time.Duration
	bytes  int64
}

// share returns the part of segments at a level.
func (p played) share(level int) float64 {
	n := 0
	for _, k := range p.levels {
		n += k
	}
	return float64(p.levels[level]) / float64(n)
}

func (d *davvi) after(wait time.Duration, do func()) {
	d.seq++
	d.events.push(item{d.now + wait, d.seq, do})
}

// stream plays the clip over links.
func (d *davvi) stream(links []Link) played {
	d.playing, d.quality = -1, super
	for _, l := range links {
		d.links = append(d.links, &davviLink{simLink: newLink(l)})
	}
	d.fill()
	for len(d.events) > 0 {
		e := d.events.pop()
		d.now = e.at
		e.do()
	}
	return d.res
}

// fill requests a first subsegment on each link, then one behind it on each (interleaved start).
func (d *davvi) fill() {
	for depth := range 2 {
		for _, l := range d.links {
			if l.asked == depth {
				d.request(l)
			}
		}
	}
}

// request requests the next subsegment on a link, if there is room for one.
func (d *davvi) request(l *davviLink) {
	if d.unasked == 0 && !d.open() {
		return
	}
	n := int64(100e3)
	if sum := d.rate(); d.dynamic && l.rate > 0 {
		n, d.block = literature.Draw(int64(len(d.links))*100e3, d.block, l.rate/sum)
		if least := literature.Least(l.rate, l.spec.RTT/2); n < least {
			n, d.block = least, 0
		}
	}
	n = min(n, d.unasked)
	d.unasked -= n
	d.underWay += n
	l.asked++
	segment, sent := d.opened-1, d.now
	delay := l.spec.RTT
	if l.spec.Jitter > 0 {
		delay += time.Duration(d.rng.Int64N(int64(l.spec.Jitter)))
	}
	d.after(delay/2, func() {
		begins := max(d.now, l.busy) + delay/2
		ends, _ := l.send(d.now, n)
		d.after(begins-d.now, func() {
			if l.asked < 2 {
				d.request(l) // the first byte of an answer sends the request behind it
			}
		})
		d.after(ends+delay/2-d.now, func() { d.arrived(l, segment, n, max(sent, l.free)) })
	})
}

// rate returns the estimated rate of all links together, in bytes per second.
func (d *davvi) rate() (sum float64) {
	for _, l := range d.links {
		sum += l.rate
	}
	return sum
}

// open opens the next segment, unless the buffer is full or the clip is over.
func (d *davvi) open() bool {
	if d.opened == len(d.clip) || d.opened > max(d.playing, -1)+d.buffer {
		return false
	}
	level := d.quality
	d.unasked, d.block = d.clip[d.opened][level], 0
	d.missing, d.complete = append(d.missing, d.unasked), append(d.complete, false)
	d.res.levels[level]++
	d.res.bytes += d.unasked
	d.opened++
	return true
}

// deadline returns the time until all complete segments will have played.
func (d *davvi) deadline() time.Duration {
	until := max(0, d.playEnds-d.now)
	for k := d.playing + 1; k < len(d.complete) && d.complete[k]; k++ {
		until += segmentTime
	}
	return until
}

// level is Algorithm 2. It returns the best level at which a segment arrives before it must play.
func (d *davvi) level(segment int, deadline time.Duration) int {
	sum := d.rate()
	for level := super; level > 0; level-- {
		if float64(d.clip[segment][level])/sum < deadline.Seconds()-float64(d.underWay)/sum {
			return level
		}
	}
	return 0
}

// arrived handles the last byte of a subsegment. Its time counts from when the link was free for it; otherwise requests that wait
// behind another answer would show half the rate.
func (d *davvi) arrived(l *davviLink, segment int, n int64, began time.Duration) {
	sample := float64(n) / (d.now - began).Seconds()
	if l.rate == 0 {
		l.rate = sample
	}
	l.rate, l.free = (l.rate+sample)/2, d.now
	l.asked--
	d.underWay -= n
	if d.missing[segment] -= n; d.missing[segment] == 0 && segment < d.opened && (segment < d.opened-1 || d.unasked == 0) {
		d.complete[segment] = true
		d.play()
		d.quality = d.level(min(d.opened, len(d.clip)-1), d.deadline())
	}
	d.fill()
}

// play begins the next segment if it is due and complete.
func (d *davvi) play() {
	next := d.playing + 1
	if next >= len(d.clip) || d.now < d.playEnds {
		return
	}
	if next >= len(d.complete) || !d.complete[next] {
		if !d.stalled {
			d.stalled, d.due = true, d.now
		}
		return
	}
	if next == 0 && !d.started {
		d.started, d.playEnds = true, d.now+startup
		d.after(startup, d.play)
		return
	}
	if d.stalled {
		d.res.misses++
		d.res.worst = max(d.res.worst, d.now-d.due)
	}
	d.stalled, d.playing, d.playEnds = false, next, d.now+segmentTime
	d.after(segmentTime, d.play)
	d.fill()
}

// TestDavviQuality checks the vectors of Algorithm 2 for links with a total of 375 kB/s and sizes of 186.5, 325, 535.5 and 752.5
// kB.
func TestDavviQuality(t *testing.T) {
	sizes := [][4]int64{{186_500, 325_000, 535_500, 752_500}}
	for _, c := range []struct {
		left     time.Duration
		buffered int
		queued   int64
		want     int
	}{
		{time.Second, 1, 375_000, 2},             // 3 s minus 1 s: super would take 2.007 s
		{500 * time.Millisecond, 1, 562_500, 1},  // 2.5 s minus 1.5 s: medium takes 0.867 s
		{0, 0, 0, 0},                             // nothing fits
		{1010 * time.Millisecond, 1, 375_000, 3}, // 2.01 s
	} {
		d := davvi{clip: sizes, underWay: c.queued, playEnds: c.left, playing: -1, links: []*davviLink{{rate: 375e3}}}
		d.complete = make([]bool, c.buffered)
		for i := range d.complete {
			d.complete[i] = true
		}
		if got := d.level(0, d.deadline()); got != c.want {
			t.Errorf("%+v: level %d", c, got)
		}
	}
}

// TestClip checks that the sizes have the means in the table.
func TestClip(t *testing.T) {
	var sum [4]float64
	const n = 20_000
	for _, s := range clip(1, n) {
		for k := range sum {
			sum[k] += float64(s[k]) * 8 / 1e3 / segmentTime.Seconds() / n
		}
	}
	for k, l := range levelRates {
		if math.Abs(sum[k]/l[1]-1) > 0.01 {
			t.Errorf("level %d: %.0f kbit/s on average, want %.0f", k, sum[k], l[1])
		}
	}
}

// TestDavvi checks that one link with spare capacity plays everything at the best level without waiting.
func TestDavvi(t *testing.T) {
	for _, dynamic := range []bool{false, true} {
		d := davvi{clip: clip(1, 100), buffer: 6, dynamic: dynamic}
		got := d.stream([]Link{{Rate: 8 * mbit, RTT: 10 * ms}, {Rate: 4 * mbit, RTT: 50 * ms}})
		if got.levels != [4]int{0, 0, 0, 100} || got.misses != 0 {
			t.Errorf("%+v", got)
		}
		var want int64
		for _, s := range d.clip {
			want += s[super]
		}
		if got.bytes != want || d.playing != 99 {
			t.Errorf("%d bytes, want %d; playing %d", got.bytes, want, d.playing)
		}
	}
}
