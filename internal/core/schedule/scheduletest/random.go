package scheduletest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

const mib = 1 << 20

// RandomView returns the view of a transfer at a random stage.
func RandomView(rnd *rand.Rand) *schedule.View {
	links := make([]schedule.Link, 1+rnd.IntN(4))
	for i := range links {
		l := &links[i]
		*l = schedule.Link{Usable: rnd.IntN(5) > 0, CanAsk: rnd.IntN(5) > 0}
		if rnd.IntN(4) > 0 {
			l.Rate = float64(1+rnd.IntN(1000)) * 0.1 * 125e3
			l.Peak = l.Rate * (0.5 + rnd.Float64())
			l.Recalled = rnd.IntN(4) == 0
		}
		l.RTT = time.Duration(rnd.IntN(300)) * time.Millisecond
		l.Suspect = !l.Usable && rnd.IntN(2) == 0
	}
	size := int64(1 + rnd.IntN(64*mib))
	v := NewView(size, int64(1+rnd.IntN(16*mib)), links...)
	v.Offset = int64(rnd.IntN(int(size)))
	v.Limit = min(v.Offset+v.Window, size)
	Take(v, Range(0, v.Offset))
	for at := v.Offset; at < size; {
		r := Range(at, min(size, at+1+int64(rnd.IntN(1+rnd.IntN(8*mib)))))
		at = r.End
		switch rnd.IntN(4) {
		case 0: // free
		case 1:
			Take(v, r) // received
		default:
			a := Ask(v, int8(rnd.IntN(len(links))), r, r.Start+int64(rnd.IntN(int(r.Len()))))
			a.HasHead = a.HasHead || rnd.IntN(2) == 0
			a.Stolen, a.Hedge = rnd.IntN(8) == 0, rnd.IntN(8) == 0
			a.Silent = links[a.Link].Suspect
			a.Blocked = a.Cursor >= v.Limit
		}
	}
	rnd.Shuffle(len(v.Attempts), func(i, j int) { v.Attempts[i], v.Attempts[j] = v.Attempts[j], v.Attempts[i] })
	for i := range links {
		links[i].Blocked = links[i].Running > 0
	}
	for _, a := range v.Attempts {
		links[a.Link].Blocked = links[a.Link].Blocked && a.Blocked
	}
	return v
}

// Clone returns a copy that shares nothing with v.
func Clone(v *schedule.View) *schedule.View {
	c := *v
	c.Free, c.Attempts, c.Links = slices.Clone(v.Free), slices.Clone(v.Attempts), slices.Clone(v.Links)
	return &c
}
