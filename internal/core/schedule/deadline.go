package schedule

import "time"

const (
	// reserve is how long before the deadline everything should have arrived.
	reserve = 500 * time.Millisecond

	// enough is the part of the needed links' goodput that is relied on when deciding whether optional links may sleep
	// again.
	enough = 0.98

	// inHand is how far a stream must be ahead of its player for optional links to sleep.
	inHand = time.Second

	// steadyTime is the time over which goodput is averaged.
	steadyTime = 3 * time.Second
)

// Deadline uses optional links only for bytes that the others cannot deliver in time (GreenBag, MP-DASH): the last byte
// within a time, or each byte of a stream when its player needs it. It wakes the optional links when the others cannot
// deliver the rest in the remaining time. The optional links carry at full rate and sleep again as soon as the others
// suffice. So the missing part arrives at once and early, in one piece if there is room for it.
//
// It trusts measured rates: if they vary, it wakes links several times. It misses a deadline that all links together
// cannot meet.
type Deadline struct {
	// Within is the time from the first call of Spare until the last byte; 0 = Bitrate applies.
	Within time.Duration
	// Bitrate is the rate in bytes per second of a stream whose player starts after Startup; 0 = Within applies.
	Bitrate float64
	Startup time.Duration

	began   time.Time
	sampled time.Time
	links   []steady
	awake   bool // optional links are in use
}

// steady is a link with its mean goodput. The View's rate reflects only the last moments, and each of its dips would
// wake a radio.
type steady struct {
	need bool    // the link is not optional, or a first request went to it
	got  int64   // bytes delivered at the last sample
	rate float64 // mean goodput in bytes per second; 0 = not yet known
}

// Spare implements Goal.
func (d *Deadline) Spare(now time.Time, v *View) time.Time {
	if d.began.IsZero() {
		d.began, d.sampled = now, now
	}
	for i := len(d.links); i < len(v.Links); i++ {
		l := &v.Links[i]
		d.links = append(d.links, steady{need: !l.Optional || l.Running > 0, got: l.Got})
	}
	measured := now.Sub(d.began) >= settle
	if measured {
		d.sample(now, v)
	}
	left, room, rate, lives := v.left(), v.room(), 0.0, false
	for i := range v.Links {
		if l, s := &v.Links[i], &d.links[i]; s.need && (l.Usable || l.Suspect) {
			rate += s.rate
			lives = true
		}
	}
	switch {
	case !lives, d.late(now, v):
		d.awake = true
	case !measured, room == 0:
		d.awake = false
	case d.awake || room >= min(v.Window, v.free())/2: // otherwise optional links would wake for small pieces
		brings := rate * (d.end(v).Sub(now) - reserve).Seconds()
		if d.awake {
			brings *= enough
		}
		d.awake = float64(left-d.asked(v)) > brings
	}
	if !d.awake {
		reason := InTime
		switch {
		case !measured:
			reason = TooEarly
		case room == 0:
			reason = NoRoom
		}
		for i := range v.Links {
			if !d.links[i].need && v.Links[i].Usable {
				v.spare(int8(i), reason)
			}
		}
	}
	return now.Add(reconsiderEvery)
}

// sample updates the goodput of the links from the bytes since the last sample.
func (d *Deadline) sample(now time.Time, v *View) {
	took := now.Sub(d.sampled)
	if took < reconsiderEvery {
		return
	}
	for i := range d.links {
		l, s := &v.Links[i], &d.links[i]
		if rate := float64(l.Got-s.got) / took.Seconds(); s.rate == 0 || took >= steadyTime {
			s.rate = rate
		} else if l.Running > 0 { // otherwise the link was at rest
			s.rate += (rate - s.rate) * took.Seconds() / steadyTime.Seconds()
		}
		s.got = l.Got
	}
	d.sampled = now
}

// asked returns the number of bytes that optional links still have to deliver.
func (d *Deadline) asked(v *View) (n int64) {
	for i := range v.Links {
		if !d.links[i].need {
			n += v.Links[i].Asked
		}
	}
	return n
}

// room returns how many bytes could be requested now, before the client takes more.
func (v *View) room() int64 {
	if r, ok := v.FirstFree(); ok {
		return min(v.Limit, v.Object.End) - r.Start
	}
	return 0
}

// end returns when the last byte is due.
func (d *Deadline) end(v *View) time.Time {
	if d.Bitrate > 0 {
		return d.began.Add(d.Startup + time.Duration(float64(v.Object.Len())/d.Bitrate*1e9))
	}
	return d.began.Add(d.Within)
}

// late reports whether a stream is less than inHand ahead of its player.
func (d *Deadline) late(now time.Time, v *View) bool {
	playing := now.Sub(d.began) - d.Startup
	if d.Bitrate == 0 || playing < -inHand {
		return false
	}
	return float64(v.front()-v.Object.Start) < min(d.Bitrate*(playing+inHand).Seconds(), float64(v.Object.Len()))
}

// front returns the first offset that has not arrived.
func (v *View) front() int64 {
	front := v.Object.End
	if len(v.Free) > 0 {
		front = v.Free[0].Start
	}
	for i := range v.Attempts {
		front = min(front, v.Attempts[i].Cursor)
	}
	return front
}
