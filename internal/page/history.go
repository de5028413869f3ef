package page

import (
	"time"

	"github.com/tributary-http/tributary/internal/control"
)

const (
	// step is the time between two samples, kept how many of them are remembered: five minutes.
	step = time.Second
	kept = 300
	// maxLinks bounds the links of a sample.
	maxLinks = 32
)

// sample is what the links carried in the time before At.
type sample struct {
	At    time.Time        `json:"at"`
	Rates map[string]int64 `json:"rates"` // bytes per second, by link
}

// history holds the samples of the last minutes, oldest first, and what the links had carried at the last one.
type history struct {
	samples []sample
	at      time.Time
	bytes   map[string]int64
}

// add takes the state of the links and returns the new sample. After a pause it counts for one step, not for all of the pause,
// since the links were idle before.
func (h *history) add(now time.Time, links []control.Link) sample {
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
			before = l.Bytes // carried before anybody looked
		}
		s.Rates[l.Name] = int64(float64(max(l.Bytes-before, 0)) / took.Seconds())
	}
	h.at, h.bytes = now, bytes
	if h.samples = append(h.samples, s); len(h.samples) > kept {
		h.samples = append(h.samples[:0:0], h.samples[len(h.samples)-kept:]...)
	}
	return s
}

// since returns the samples that are not too old.
func (h *history) since(now time.Time) []sample {
	for i, s := range h.samples {
		if now.Sub(s.At) < kept*step {
			return h.samples[i:]
		}
	}
	return nil
}
