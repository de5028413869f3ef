package sim

import (
	"math/rand/v2"
	"time"
)

// MovingShares returns the traces of two links whose rates change together every 2 to 10 s while their sum stays the
// same: the link dynamics of Evensen 2011 section 4.3.1. The first link's rate is drawn between least and sum - least,
// in bytes per second. The traces last at least length, and repeat after their end.
func MovingShares(seed uint64, sum, least float64, length time.Duration) (first, second []Rate) {
	r := rand.New(rand.NewPCG(seed, 17))
	for at := time.Duration(0); at < length; {
		hold := time.Duration(between(r, 2e3, 10e3)) * time.Millisecond
		rate := between(r, least, sum-least)
		first, second = append(first, Rate{hold, rate}), append(second, Rate{hold, sum - rate})
		at += hold
	}
	return first, second
}
