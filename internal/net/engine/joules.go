package engine

import (
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
)

// radioMeter accounts for the joules of one link's radio. Safe for concurrent use. Without a radio it counts nothing.
type radioMeter struct {
	mu    sync.Mutex
	known bool
	last  time.Time // of the last byte
	meter energy.Meter
}

// set sets the radio, nil for none; the joules counted so far are kept.
func (m *radioMeter) set(r *energy.Radio) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known = r != nil; m.known {
		m.meter.Radio = *r
	}
}

// add counts received bytes.
func (m *radioMeter) add(now time.Time, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = now
	if m.known {
		m.meter.Add(now, 0, bytes)
	}
}

// lastByte returns when the last byte arrived; zero = none has.
func (m *radioMeter) lastByte() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// joules returns the energy that the radio has used, and its state.
func (m *radioMeter) joules(now time.Time) (joules float64, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return 0, ""
	}
	return m.meter.At(now).Radio(), m.meter.State(now).String()
}
