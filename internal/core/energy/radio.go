package energy

import "time"

// AwakeWatts is the power that a phone takes in addition to its radios while its user waits with the screen on
// (Skjolden 2019 section 7.1). Without it, a slow link on which a download takes many times as long would seem frugal.
const AwakeWatts = 0.7

// State is what a radio is doing.
type State uint8

// The states. A Wi-Fi radio has Idle, Active and Tail; an LTE radio all but Tail; a 5G radio all but the two DRX
// states.
const (
	Idle       State = iota
	Promotion        // from idle to connected, before the first byte
	Active           // receiving or sending bytes
	Continuous       // LTE: still receiving continuously, without data
	ShortDRX         // LTE: discontinuous reception with a short period
	LongDRX          // LTE: discontinuous reception with a long period
	Tail             // still connected
)

var stateNames = [...]string{"idle", "promotion", "active", "continuous reception", "short DRX", "long DRX", "tail"}

func (s State) String() string { return stateNames[s] }

// phase is one phase of a radio's tail.
type phase struct {
	state    State
	watts    float64 // mean over its periods
	duration time.Duration
}

// maxPhases is the maximum number of phases in a tail: continuous reception, short and long DRX.
const maxPhases = 3

// Radio has the parameters of one radio at one signal strength. Get one from [Device.Radio].
type Radio struct {
	promotionWatts    float64
	promotionDuration time.Duration
	rxWatts, txWatts  float64
	rxJoulesPerByte   float64 // in addition to rxWatts
	txJoulesPerByte   float64
	join              time.Duration // events at most this far apart belong to one transfer
	tail              [maxPhases]phase
	phases            int
	idleWatts         float64
}

// PromotionJoules returns the energy of waking the radio, before the first byte.
func (r *Radio) PromotionJoules() float64 { return r.promotionWatts * r.promotionDuration.Seconds() }

// TailDuration returns how long the radio stays connected after its last byte.
func (r *Radio) TailDuration() (d time.Duration) {
	for _, p := range r.tail[:r.phases] {
		d += p.duration
	}
	return d
}

// TailJoules returns the tail energy that the radio takes within d after its last byte, until it is idle.
func (r *Radio) TailJoules(d time.Duration) (joules float64) {
	for _, p := range r.tail[:r.phases] {
		if d <= p.duration {
			return joules + p.watts*d.Seconds()
		}
		joules += p.watts * p.duration.Seconds()
		d -= p.duration
	}
	return joules
}

// WakeJoules returns the energy cost of the first byte on a radio that has been silent for a time: promotion and a
// whole tail if the radio is idle, otherwise what the byte adds to the tail that it interrupts. The bytes themselves
// cost [Radio.ActiveJoules].
func (r *Radio) WakeJoules(silent time.Duration) float64 {
	whole := r.TailJoules(r.TailDuration())
	if silent > r.TailDuration() {
		return r.PromotionJoules() + whole
	}
	return r.TailJoules(max(silent, 0)) // the rest of that tail is not spent; a whole one follows
}

// ActiveJoules returns the energy of a transfer that takes d, without promotion and tail.
func (r *Radio) ActiveJoules(d time.Duration, up, down int64) float64 {
	return r.activeWatts(up, down)*d.Seconds() + r.byteJoules(up, down)
}

// activeWatts mixes the power of the two directions in the ratio of their bytes: the acknowledgments of a download are
// 5 % of its bytes, and a radio does not send at full power while it receives.
func (r *Radio) activeWatts(up, down int64) float64 {
	if up+down <= 0 {
		return r.rxWatts
	}
	return (r.txWatts*float64(up) + r.rxWatts*float64(down)) / float64(up+down)
}

func (r *Radio) byteJoules(up, down int64) float64 {
	return r.txJoulesPerByte*float64(up) + r.rxJoulesPerByte*float64(down)
}

// state returns what the radio is doing this long after its last byte.
func (r *Radio) state(silent time.Duration) State {
	for _, p := range r.tail[:r.phases] {
		if silent < p.duration {
			return p.state
		}
		silent -= p.duration
	}
	return Idle
}
