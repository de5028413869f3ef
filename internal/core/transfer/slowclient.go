package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

const (
	// ampleRate is how many times faster than a slow client its one link must be: the window is refilled in one go.
	ampleRate = 2

	// restBefore is how long a connection that a slow client does not need is idle before it is given back.
	restBefore = time.Second

	// muchFaster is how many times faster another link must be than the one that serves alone while memory is scarce.
	muchFaster = 4

	// soleFor is how long one link serves a transfer that begins while memory is scarce: if many others begin, too,
	// there will be no room for a second connection.
	soleFor = 3 * time.Second
)

// narrow chooses the link that serves a slow client alone, over one connection: another one could not make the client
// faster, and costs memory, requests and radios. As soon as the window runs low or the link fails, all links serve
// again. While memory is scarce, one link serves any client: others need the memory of a second connection for their
// first.
func (m *Machine) narrow(now time.Time) {
	p := &m.client
	switch slow, sole := p.need > 0 && !m.low(), m.sole(now); {
	case sole >= 0:
		p.only = sole
	case p.only >= 0 && !(slow && m.ample(now, p.only)):
		p.only = none
	case p.only < 0 && slow:
		for i := range m.links {
			if l := &m.links[i]; l.spared == schedule.NotSpared && m.ample(now, int8(i)) &&
				(p.only < 0 || l.got > m.links[p.only].got) {
				p.only = int8(i)
			}
		}
	}
	for i := range m.links {
		m.links[i].single = p.only >= 0
	}
	if p.only >= 0 {
		m.shed(now)
	}
}

// sole returns the link that is to serve alone because memory is scarce. It returns none if that link cannot, or lets
// the client wait while another one is known to be much faster.
func (m *Machine) sole(now time.Time) int8 {
	if !m.scarce && !now.Before(m.soleUntil) {
		return none
	}
	for i := range m.links {
		if l := &m.links[i]; l.sole && !l.silent && l.state == health.Up && m.ready(now, int8(i)) &&
			!(m.low() && m.muchSlower(now, l)) {
			return int8(i)
		}
	}
	return none
}

// muchSlower reports whether l delivers much less than is known of another link that costs nothing.
func (m *Machine) muchSlower(now time.Time, l *link) bool {
	for i := range m.links {
		if o := &m.links[i]; o != l && m.ready(now, int8(i)) && !o.metered &&
			o.rate.PerSecond(now) > muchFaster*l.rate.PerSecond(now) {
			return true
		}
	}
	return false
}

// none stands for no link.
const none = -1

// ample reports whether a link alone can serve the client, and costs no more than others.
func (m *Machine) ample(now time.Time, i int8) bool {
	l := &m.links[i]
	rate := max(l.rate.Peak(), l.rate.PerSecond(now)) // the peak is not known while bursts are short
	return m.ready(now, i) && !l.metered && !l.optional && rate >= ampleRate*m.client.pace
}

// shed gives back connections that a slow client does not need.
func (m *Machine) shed(now time.Time) {
	kept := m.onReserve()
	for i := 0; i < len(m.conns); i++ {
		c := &m.conns[i]
		if c.link == m.client.only && !kept {
			kept = true
			continue
		}
		if c.open && !c.doomed && len(c.queue) == 0 && now.Sub(c.progress) >= restBefore {
			m.act(Action{Kind: Keep, Conn: c.id, Link: c.link})
			m.dropConn(c.id)
			i--
		}
	}
}

// alone takes the links that a slow client does not need out of the view.
func (m *Machine) alone(v *schedule.View) {
	for i := range v.Links {
		if l := &v.Links[i]; m.client.only >= 0 && int8(i) != m.client.only && l.Usable {
			l.Usable, l.Spared = false, schedule.NoRoom
		}
	}
}
