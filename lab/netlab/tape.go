package netlab

import "time"

// tapeStep is the length of a step of a Tape.
const tapeStep = 5 * time.Millisecond

// tapeSteps bounds a tape; later bytes count in the last step.
const tapeSteps = int(15 * time.Minute / tapeStep)

// tapeData is the size in bytes above which a packet counts as carrying data: acknowledgements and the packets that
// open and close connections are smaller.
const tapeData = 100

// Tape holds the deliveries of a link in one direction since Record.
type Tape struct {
	Began   time.Time
	Step    time.Duration
	Payload []int64   // bytes of TCP payload delivered in each step
	Bytes   int64     // bytes on the link delivered altogether
	First   time.Time // time of the first packet of more than 100 bytes, zero if there was none
	Last    time.Time // time of the last such packet
}

// Sum returns the bytes of payload that were delivered by a moment. The step that contains the moment counts in
// proportion.
func (t Tape) Sum(by time.Time) int64 {
	steps := float64(by.Sub(t.Began)) / float64(t.Step)
	var sum float64
	for i, n := range t.Payload {
		if steps <= float64(i) {
			break
		}
		sum += float64(n) * min(1, steps-float64(i))
	}
	return int64(sum)
}

// Total returns the bytes of payload that were delivered altogether.
func (t Tape) Total() int64 { return t.Sum(t.Began.Add(time.Duration(len(t.Payload)) * t.Step)) }

// recorder keeps a direction's tape; times count from the emulator's start.
type recorder struct {
	began       time.Duration
	payload     []int64
	bytes       int64
	first, last time.Duration
	data        bool // there was a packet with data
}

// note records a packet that is delivered.
func (r *recorder) note(now time.Duration, b []byte) {
	r.bytes += int64(len(b))
	if len(b) > tapeData {
		if !r.data {
			r.first, r.data = now, true
		}
		r.last = now
	}
	n := payload(b)
	if n == 0 {
		return
	}
	step := min(int(max(now-r.began, 0)/tapeStep), tapeSteps-1)
	for len(r.payload) <= step {
		r.payload = append(r.payload, 0)
	}
	r.payload[step] += int64(n)
}

// tape returns the recording in wall-clock time, given the time at which the emulator started.
func (r *recorder) tape(start time.Time) Tape {
	t := Tape{Began: start.Add(r.began), Step: tapeStep, Payload: append([]int64(nil), r.payload...), Bytes: r.bytes}
	if r.data {
		t.First, t.Last = start.Add(r.first), start.Add(r.last)
	}
	return t
}

const (
	protocolTCP   = 6
	headerLenIPv6 = 40
)

// payload returns the bytes of TCP payload in a packet: 0 if it is not TCP, or has IPv6 extension headers, which
// nothing in the lab sends.
func payload(b []byte) int {
	var transport int
	switch {
	case len(b) >= 20 && b[0]>>4 == 4 && b[9] == protocolTCP:
		transport = int(b[0]&0xf) * 4
	case len(b) >= headerLenIPv6 && b[0]>>4 == 6 && b[6] == protocolTCP:
		transport = headerLenIPv6
	default:
		return 0
	}
	if len(b) < transport+20 {
		return 0
	}
	return max(0, len(b)-transport-int(b[transport+12]>>4)*4)
}
