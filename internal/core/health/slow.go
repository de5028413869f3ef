package health

import "time"

// SlowCheck selects how links that are much slower than the others are treated.
type SlowCheck string

// The slow-link checks.
const (
	// SlowGuarded bans a link under a published limit only if the others have waited for it longer than it was worth.
	SlowGuarded SlowCheck = "guarded"
	// SlowLiteral applies both checks of Skjolden 2019 section 8.2.4 exactly as published, for comparison.
	SlowLiteral SlowCheck = "literal"
	// SlowOff never bans a link for being slow.
	SlowOff SlowCheck = "off"
)

// The limits of Skjolden 2019 section 8.2.4.
const (
	staticLimit  = 100e3 / 8 // bytes per second
	dynamicLimit = 0.2       // of the mean rate of all links
)

// The guards of SlowGuarded.
const (
	// hindrance is the net waiting time that a link may cause before it is banned, see speed.debt. It is not zero
	// because transfers start with ranges of a guessed length. A link that returns from a ban has used it up.
	hindrance = 200 * time.Millisecond

	// credit bounds the waiting that earlier bytes make up for: the rates of radios dip.
	credit = 2 * time.Second
)

// rateFresh is the maximum age of a speed report that still counts.
const rateFresh = time.Second

// Speed is a transfer's report about the rate of a link.
type Speed struct {
	Rate float64 // goodput in bytes per second
	// bytes that it brought since the last report, less those that others could have brought while it held them up
	Gain float64
}

// speed is the slow-link check's record of one link.
type speed struct {
	rate float64
	at   time.Time // of the last report
	debt float64   // seconds that other links waited for it, minus the time that they would have needed for its bytes
}

// Speed reports the rate of a link in use, as often as the transfers like. A link that the check finds too slow is
// banned.
func (b *Board) Speed(now time.Time, link int8, is Speed, check SlowCheck) {
	e := &b.links[link]
	s := &e.speed
	s.rate, s.at = is.Rate, now
	if e.state != Up {
		return
	}
	slow, others := b.tooSlow(now, link)
	if others > 0 {
		s.debt = max(-credit.Seconds(), s.debt-is.Gain/others)
	}
	if slow && (check == SlowLiteral || check == SlowGuarded && s.debt > hindrance.Seconds()) {
		b.ban(now, link, TooSlow)
	}
}

// tooSlow reports whether a link's rate is under the static or the dynamic limit, and returns the sum of the others'
// rates. If all links are under the static limit, they are left to finish, as the thesis says; so the last link is
// never too slow.
func (b *Board) tooSlow(now time.Time, link int8) (slow bool, others float64) {
	rate := b.links[link].speed.rate
	n, fastest := 1., rate
	for i := range b.links {
		if o := &b.links[i]; int8(i) != link && o.state == Up && now.Sub(o.speed.at) <= rateFresh {
			others += o.speed.rate
			fastest = max(fastest, o.speed.rate)
			n++
		}
	}
	return rate < dynamicLimit*(rate+others)/n || rate < staticLimit && fastest >= staticLimit, others
}
