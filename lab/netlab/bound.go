package netlab

import (
	"errors"
	"slices"
	"time"
)

// segmentPayload is the number of body bytes in a full packet over TCP with timestamps; the rest is headers.
const segmentPayload = 1448

// PhysicalBound returns the time that the links' own capacity needs to carry size bytes of a body to the client when
// all of them are used from the start: the first byte of each link arrives after two round trips, full packets follow
// without a gap at the link's rate or along its trace, ramp and events included. No packet is lost and nothing waits in
// a queue. It is an error if the links carry less than size.
func PhysicalBound(sc Scenario, size Bytes) (time.Duration, error) {
	streams := make([]*stream, len(sc.Links))
	for i, spec := range sc.Links {
		streams[i] = newStream(spec, sc.Events)
	}
	for left := int64(size); ; {
		next := slices.MinFunc(streams, func(a, b *stream) int {
			switch {
			case a.ended != b.ended && a.ended:
				return 1
			case a.ended != b.ended:
				return -1
			}
			return int(a.at - b.at)
		})
		if next.ended {
			return 0, errors.New("physical bound: the links go dark permanently before the object is through")
		}
		if left -= segmentPayload; left <= 0 {
			return next.at, nil
		}
		next.advance()
	}
}

// stream is the packets that one link delivers, one after the other.
type stream struct {
	shape  Shape
	pacer  pacer
	events []Event // remaining events of this link
	dark   bool
	ended  bool          // no more packets will be delivered
	left   time.Duration // when the last packet left the queue
	at     time.Duration // when the last packet is delivered
}

func newStream(spec LinkSpec, events []Event) *stream {
	s := &stream{shape: spec.Down}
	for _, e := range events {
		if e.Link == spec.Name {
			s.events = append(s.events, e)
		}
	}
	s.pacer.set(s.shape)
	// the link wakes when the server answers the SYN; the request comes a round trip later
	rtt := spec.Up.Delay + spec.Down.Delay
	s.pacer.wake(spec.Up.Delay, 0)
	s.left = spec.Up.Delay + rtt
	s.advance()
	return s
}

// advance moves to the next packet that is delivered.
func (s *stream) advance() {
	for {
		sent := s.pacer.finish(s.left, mtu)
		if len(s.events) == 0 || s.events[0].At > sent {
			s.left, s.at = sent, sent+s.shape.Delay
			return
		}
		e := s.events[0]
		s.events = s.events[1:]
		s.left = max(s.left, e.At)
		s.apply(e)
		if s.dark && !s.skipDark() {
			s.ended = true
			return
		}
	}
}

// skipDark advances to the moment when the link carries packets again, and reports whether there is one.
func (s *stream) skipDark() bool {
	for len(s.events) > 0 {
		e := s.events[0]
		s.events = s.events[1:]
		s.left = max(s.left, e.At)
		if s.apply(e); !s.dark {
			return true
		}
	}
	return false
}

func (s *stream) apply(e Event) {
	switch e.What {
	case EventBlackhole, EventDown, EventRemoveAddrs:
		s.dark = true
	case EventRestore, EventUp, EventRestoreAddrs:
		s.dark = false
	case EventShape:
		e.ShapeChange.apply(&s.shape)
		s.pacer.set(s.shape)
	}
}
