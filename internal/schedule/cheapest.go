package schedule

import "time"

// cheaper is how much a metered link in use may exceed its price before it rests again: rates vary.
const cheaper = 1.05

// Cheapest uses metered links, the optional ones, only where they are worth their money: where PerPercent bytes over them buy one
// percent of speed. A download of S bytes, x of them over metered links, is as much faster than without them as S is more than
// S-x, so a percent costs (S-x)/100 bytes. So a metered link is worth most next to slow links and in small objects. It decides
// after settle, when the other links have shown their rates, and all the time after that.
//
// All metered links are used or none. Where the other links are silent for a second, or there is none, metered ones carry the
// download whatever it costs.
type Cheapest struct {
	// PerPercent is how many bytes over metered links one percent of speed may cost.
	PerPercent int64

	began  time.Time // when the size was known
	silent time.Time // since when no free link is usable; zero = one is
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

// reason says why metered links rest, NotSpared if they do not.
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
