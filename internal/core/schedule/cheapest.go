package schedule

import "time"

// cheaper is the factor by which metered links in use may exceed their price before they rest again, since rates vary.
const cheaper = 1.05

// Cheapest uses metered links, the optional ones, only where they are worth their cost: where at most PerPercent bytes
// over them buy one percent of speed. If x of the S bytes of a download go over metered links, the download is faster
// by the ratio of S to S-x, so a percent costs (S-x)/100 bytes. A metered link is therefore worth most beside slow
// links and for small objects. Cheapest decides for the first time after settle, when the other links' rates are known,
// and again every reconsiderEvery.
//
// Either all metered links are used or none. If the other links are silent for a second, or there are none, the metered
// ones carry the download at any cost.
type Cheapest struct {
	// PerPercent is the number of bytes over metered links that one percent of speed may cost.
	PerPercent int64

	began  time.Time // when the size became known
	silent time.Time // start of the time without a usable unmetered link; zero = one is usable
	in     bool      // metered links are in use
}

// Spare implements Goal.
func (c *Cheapest) Spare(now time.Time, v *View) time.Time {
	if c.began.IsZero() {
		c.began = now
	}
	reason := c.reason(now, v)
	c.in = reason == NotSpared
	rest := false
	for i := range v.Links {
		if l := &v.Links[i]; l.Optional && l.Usable {
			rest = true
			if !c.in {
				v.spare(int8(i), reason)
			}
		}
	}
	if !rest {
		return time.Time{}
	}
	return now.Add(reconsiderEvery)
}

// reason returns why metered links rest, or NotSpared if they are used.
func (c *Cheapest) reason(now time.Time, v *View) Spared {
	var free, metered float64 // bytes per second
	var spent int64
	alive, suspect, measured := false, false, now.Sub(c.began) >= settle
	for i := range v.Links {
		switch l := &v.Links[i]; {
		case l.Optional:
			spent += l.Got
			if l.Usable {
				metered += l.believed()
			}
		case l.Usable:
			alive = true
			free += l.Rate
			measured = measured && (l.Running == 0 || l.Rate > 0 && !l.Recalled)
		default:
			suspect = suspect || l.Suspect
		}
	}
	if alive {
		c.silent = time.Time{}
	} else if c.silent.IsZero() {
		c.silent = now
	}
	switch {
	case !alive && suspect && now.Before(c.silent.Add(silentMost)):
		return JustSilent
	case !alive:
		return NotSpared
	case !measured:
		return TooEarly
	}
	most := float64(c.PerPercent)
	if c.in {
		most *= cheaper
	}
	brought := float64(spent) + float64(v.left())*metered/(free+metered)
	if (float64(v.Object.Len())-brought)/100 > most {
		return CostsMoney
	}
	if !c.in && !v.hasRoom() {
		return NoRoom
	}
	return NotSpared
}
