package page

import (
	"time"

	"github.com/tributary-http/tributary/internal/net/engine"
)

const (
	// step is the time between two samples, and kept is how many samples are remembered: five minutes.
	step = time.Second
	kept = 300
	// maxLinks is the maximum number of links in a sample.
	maxLinks = 32
)

// sample is what the links carried in the step before At.
type sample struct {
	At    time.Time        `json:"at"`
	Rates map[string]int64 `json:"rates"` // bytes per second, by link
}

// history holds the samples of the last minutes, oldest first, and the bytes that the links had carried at the last
// one.
type history struct {
	samples []sample
	at      time.Time
	bytes   map[string]int64
}

// add takes the state of the links and returns the new sample. After a pause, the sample counts for one step, not for
// the whole pause, since the links were idle before.
func (h *history) add(now time.Time, links []engine.LinkStatus) sample {
	took := now.Sub(h.at)
	if took <= 0 || took > 2*step {
		took = step
	}
	s := sample{At: now, Rates: map[string]int64{}}
	bytes := map[string]int64{}
	for _, l := range links[:min(len(links), maxLinks)] {
		bytes[l.Name] = l.Bytes
		before, known := h.bytes[l.Name]
		if !known && h.bytes == nil {
			before = l.Bytes // carried before the first sample
		}
		s.Rates[l.Name] = int64(float64(max(l.Bytes-before, 0)) / took.Seconds())
	}
	h.at, h.bytes = now, bytes
	if h.samples = append(h.samples, s); len(h.samples) > kept {
		h.samples = append(h.samples[:0:0], h.samples[len(h.samples)-kept:]...)
	}
	return s
}

// since returns the samples of the last five minutes.
func (h *history) since(now time.Time) []sample {
	for i, s := range h.samples {
		if now.Sub(s.At) < kept*step {
			return h.samples[i:]
		}
	}
	return nil
}
