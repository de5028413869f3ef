package main

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/lab/netlab"
)

// The radios that a benchmark's links stand for: that of the first link and that of all others. Both belong to one
// phone, so that they are comparable.
const (
	firstRadio  = "galaxy-s3/wifi"
	otherRadios = "galaxy-s3/lte"
)

// radioOf returns the name of the radio that a link stands for.
func radioOf(link int) string {
	if link == 0 {
		return firstRadio
	}
	return otherRadios
}

// joulesOf models the energy that a download of this duration takes from a phone's battery: its radios for the payload
// that the links delivered, promotions and whole tails included, and the waiting phone. Handshakes and requests are not
// counted.
func joulesOf(tapes []netlab.Tape, took time.Duration) (float64, error) {
	joules := energy.AwakeWatts * took.Seconds()
	for i, t := range tapes {
		radio, err := energy.FindRadio(radioOf(i))
		if err != nil {
			return 0, err
		}
		m := energy.Meter{Radio: *radio}
		for step, n := range t.Payload {
			if n > 0 {
				m.Add(t.Began.Add(time.Duration(step)*t.Step), 0, n)
			}
		}
		joules += m.Settled().Radio()
	}
	return joules, nil
}
