package netlab

import (
	"testing"
	"time"
)

func TestPhysicalBound(t *testing.T) {
	const ms = time.Millisecond
	// 12 Mbit/s carry a packet per millisecond
	link := func(name string, rtt time.Duration) LinkSpec { return Symmetric(name, 12*Mbit, rtt) }
	trace, err := NewTrace([]uint32{10, 20, 30, 40})
	if err != nil {
		t.Fatal(err)
	}
	traced := link("wifi", 40*ms)
	traced.Down.Trace = trace
	ramping := link("wifi", 40*ms)
	ramping.Down.Ramp = 300 * ms
	dark := func(at time.Duration, what string) Event { return Event{At: at, Link: "wifi", What: what} }
	for name, c := range map[string]struct {
		sc      Scenario
		packets int64
		want    time.Duration
	}{
		"the first packet takes two round trips and its own time": {Scenario{Links: []LinkSpec{link("wifi", 40*ms)}}, 1, 81 * ms},
		"a packet per millisecond":                                {Scenario{Links: []LinkSpec{link("wifi", 40*ms)}}, 100, 180 * ms},
		"two links":                                               {Scenario{Links: []LinkSpec{link("wifi", 40*ms), link("lte", 40*ms)}}, 200, 180 * ms},
		"the far one starts later":                                {Scenario{Links: []LinkSpec{link("wifi", 40*ms), link("lte", 60*ms)}}, 100, 150 * ms},
		// the trace begins with the answer to the SYN at 20 ms and the request arrives at 60 ms, so the opportunities of
		// 60 and 70 ms count
		"a trace": {Scenario{Links: []LinkSpec{traced}}, 2, 90 * ms},
		// from 20 ms on: a third to all of the rate in 300 ms; at 60 ms it is 0.422, and the integral up to the ramp's
		// end at 320 ms is 260 x 0.711 = 184.9 packets
		"a ramp": {Scenario{Links: []LinkSpec{ramping}}, 185, 341 * ms},
		"dark for a time": {
			Scenario{Links: []LinkSpec{link("wifi", 40*ms)}, Events: []Event{dark(110*ms, EventBlackhole), dark(200*ms, EventRestore)}},
			100, 271 * ms, // 49 packets before, then 51 from 200 ms on
		},
		"one for good": {
			Scenario{Links: []LinkSpec{link("wifi", 40*ms), link("lte", 40*ms)}, Events: []Event{dark(110*ms, EventDown)}},
			149, 180 * ms,
		},
	} {
		got, err := PhysicalBound(c.sc, Bytes(c.packets*segmentPayload))
		if diff := got - c.want; err != nil || diff < -ms || diff > ms {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	_, err = PhysicalBound(Scenario{Links: []LinkSpec{link("wifi", 40*ms)}, Events: []Event{dark(0, EventDown)}}, 1)
	if err == nil {
		t.Error("a link that is down from the start carries something")
	}
}

func TestPhysicalBoundOfAShape(t *testing.T) {
	half := 6 * Mbit
	sc := Scenario{
		Links:  []LinkSpec{Symmetric("wifi", 12*Mbit, 0)},
		Events: []Event{{At: 100 * time.Millisecond, Link: "wifi", What: EventShape, ShapeChange: ShapeChange{Rate: &half}}},
	}
	got, err := PhysicalBound(sc, 200*segmentPayload)
	if want := 300 * time.Millisecond; err != nil || got < want-2*time.Millisecond || got > want+2*time.Millisecond {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
