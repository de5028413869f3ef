package transfer

import (
	"math"
	"time"
)

const (
	// consumptionPeriod is the time over which a client's speed is measured.
	consumptionPeriod = 500 * time.Millisecond

	// consumptionAhead is how far ahead of a slow client the window must reach: longer than a link is silent before
	// another one takes over.
	consumptionAhead = time.Second

	leastNeed = 256 << 10 // bytes: half of it is worth a request on each of two links

	fastNeed = 8 << 20 // bytes; a client that needs this much is not slow

	// burst is how many times longer ranges are if a window is filled in one go: an eighth of the window would be
	// short, and longer ranges keep nobody waiting.
	burst = 4

	// growEvery is the least time between two increases of a need that proves too small.
	growEvery = 200 * time.Millisecond
)

// consumption finds out whether the client is slower than the links: then part of its window never empties, and a
// window of one second at its speed is enough. A client that takes bytes as they arrive needs the largest window it can
// get.
type consumption struct {
	since     time.Time // start of the period
	delivered int64     // bytes delivered in the period
	ranLow    bool      // the window ran low in the period
	need      int64     // bytes, as last reported; 0 = everything
	pace      float64   // bytes per second in the last period
	only      int8      // link that serves a slow client alone, see narrow; none = all serve

	looked time.Time // when a need that may be too small was last checked
	taken  int64     // bytes delivered since looked
}

// measureClient measures the client's speed and reports the need when it changes by a quarter or more.
func (m *Machine) measureClient(now time.Time) {
	if !m.known || m.received || m.scattered || m.cfg.KeepWindow {
		return
	}
	p := &m.client
	low := m.low()
	p.ranLow = p.ranLow || low
	if took := now.Sub(p.looked); low && p.need > 0 && took >= growEvery {
		// Twice its speed: a client that is held back by its window takes more after the next step; one that is held
		// back by the links does not.
		need := int64(2 * float64(p.taken) / took.Seconds() * consumptionAhead.Seconds())
		if p.looked, p.taken = now, 0; need > p.need {
			if p.need = need; need >= fastNeed {
				p.need = 0
			}
			m.tellNeed()
		}
	} else if took >= 2*growEvery {
		p.looked, p.taken = now, 0
	}
	took := now.Sub(p.since)
	if took < consumptionPeriod {
		return
	}
	need := max(leastNeed, int64(float64(p.delivered)/took.Seconds()*consumptionAhead.Seconds()))
	if !p.ranLow && need < fastNeed && (p.need == 0 || need < p.need*3/4 || need > p.need*5/4) {
		p.need = need
		m.tellNeed()
	}
	p.pace = float64(p.delivered) / took.Seconds()
	p.since, p.delivered, p.ranLow = now, 0, low
}

// low reports whether the client will soon have taken everything that arrived.
func (m *Machine) low() bool { return m.led.Ready() < m.led.Window()/4 }

// hasEnough reports whether a slow client has enough: its window is filled in one go when half of it is empty, so that
// links and radios rest in between, and the flows of many slow clients do not constantly compete with that of a fast
// one.
func (m *Machine) hasEnough() bool {
	if m.client.need == 0 || m.low() {
		return false
	}
	free := m.led.Free()
	return len(free) > 0 && m.led.Limit()-free[0].Start < min(m.led.Window()/2, m.led.End()-free[0].Start)
}

func (m *Machine) tellNeed() {
	n := m.client.need
	if n == 0 {
		n = math.MaxInt64
	}
	m.act(Action{Kind: Need, N: n})
}

// nextLook returns when to measure the client's speed even if nothing happens, since the client may have stopped. It is
// zero if that cannot change anything.
func (m *Machine) nextLook() time.Time {
	if p := &m.client; m.known && !m.received && !m.scattered && !m.cfg.KeepWindow && p.need != leastNeed && !m.low() {
		return p.since.Add(consumptionPeriod)
	}
	return time.Time{}
}
