package health

import "time"

const (
	// warmUp keeps a link that is still building up from being judged: LTE takes 2.5 s on average to reach its rate
	// (Skjolden 2019, figure 4.17).
	warmUp = 5 * time.Second

	// underLimitFor is how long a link must stay under the limit. With 7.49 beside 66.70 Mbit/s the dynamic limit is
	// 7.42 Mbit/s: a dip of 1 % must not ban a working link.
	underLimitFor = 3 * time.Second

	// margin is the share of the limit under which a link counts as slow: the hysteresis.
	margin = 0.8
)

// speed is the slow-link check's record of one link.
type speed struct {
	rate  float64
	at    time.Time // of the last report
	busy  time.Time // since when the link is reported without a pause
	under time.Time // since when it is under the limit; zero = it is not
}

// Rate reports the goodput of a busy link in bytes per second, as often as the transfers like; a link that is not
// reported for a second is not judged. A link under a limit for 3 s is banned.
func (b *Board) Rate(now time.Time, link int8, rate float64, lim Limits) {
	e := &b.links[link]
	s := &e.speed
	if now.Sub(s.at) > time.Second {
		s.busy, s.under = now, time.Time{}
	}
	s.rate, s.at = rate, now
	if e.state != Up || now.Sub(s.busy) < warmUp {
		return
	}
	var sum float64
	n := 0
	for i := range b.links {
		if o := &b.links[i]; o.state == Up && now.Sub(o.speed.at) <= time.Second {
			sum += o.speed.rate
			n++
		}
	}
	if n < 2 { // the last link is exempt: with one link the dynamic limit never fires, the static one must not
		s.under = time.Time{}
		return
	}
	mean := sum / float64(n)
	// The static limit alone would drop a link at 90 kbit/s beside one at 110: it needs a much better one, too.
	slow := rate < margin*lim.Dynamic*mean || rate < margin*lim.Static && rate < mean/2
	switch {
	case !slow:
		s.under = time.Time{}
	case s.under.IsZero():
		s.under = now
	case now.Sub(s.under) >= underLimitFor:
		b.ban(now, link, TooSlow)
	}
}
