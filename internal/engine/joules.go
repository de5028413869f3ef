package engine

import (
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/energy"
)

// radioMeter accounts for the joules of one link's radio. Safe for concurrent use. Without a radio it counts nothing.
type radioMeter struct {
	mu    sync.Mutex
	known bool
	last  time.Time // of the last byte
	meter energy.Meter
}

// set sets the radio, nil for none; the joules so far stay.
func (m *radioMeter) set(r *energy.Radio) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known = r != nil; m.known {
		m.meter.Radio = *r
	}
}

// add counts bytes that came.
func (m *radioMeter) add(now time.Time, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = now
	if m.known {
		m.meter.Add(now, 0, bytes)
	}
}

// lastByte returns when the last byte came; zero = none has.
func (m *radioMeter) lastByte() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// joules returns what the radio has taken, and what it does.
func (m *radioMeter) joules(now time.Time) (joules float64, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return 0, ""
	}
	return m.meter.At(now).Radio(), m.meter.State(now).String()
}
