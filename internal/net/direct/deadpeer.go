package direct

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	// pausing is how long a running connection must be quiet before the other end is asked for a sign of life.
	pausing = time.Second
	// asking is the maximum time for which it is asked.
	asking = 6 * time.Second
	// running is the rate, in bytes per second, from which a connection counts as running.
	running = 8 << 10

	// A connection is overdue when an answer has been owed for at least owing, but nothing has arrived for
	// health.BanAfter.
	owing = 2 * time.Second
)

// deadPeer detects that the other end of a connection has fallen silent. That is certain only while the other end owes
// an acknowledgment. If it stops sending, it may have nothing to send, so a keep-alive makes it owe one. A keep-alive
// costs less than a new connection, and no one else sees it. deadPeer is pure: now is an argument.
type deadPeer struct {
	seen  time.Time // the last look
	total int64     // bytes carried by then
	ran   bool      // it was running when it last carried something
	owed  time.Time // since when an answer is owed; zero = none is owed
	asked time.Time // since when it is asked for a sign of life; zero = it is not asked
}

// findings say what to do about a connection.
type findings struct {
	ask, relax bool // start, or stop, asking the other end for a sign of life
	overdue    bool // the link may be dead
	watch      bool // look again soon
}

// look records the state of the connection and returns what to do.
func (v *deadPeer) look(now time.Time, is link.Vitals) (f findings) {
	heard := now.Add(-is.Heard)
	switch {
	case !is.Owed:
		v.owed = time.Time{}
	case v.owed.IsZero() && !v.asked.IsZero():
		v.owed = v.asked
	case v.owed.IsZero() || heard.After(v.owed):
		v.owed = now
	}
	if n, step := is.Carried-v.total, now.Sub(v.seen); n > 0 && step > 0 {
		v.ran = float64(n)/step.Seconds() >= running
	}
	v.seen, v.total = now, is.Carried
	switch {
	case v.asked.IsZero() && v.ran && !is.Owed && is.Heard >= pausing:
		f.ask, v.ran, v.asked = true, false, now
	case !v.asked.IsZero() && (heard.After(v.asked) || now.Sub(v.asked) >= asking):
		f.relax, v.asked = true, time.Time{}
	}
	owed := now.Sub(v.owed)
	f.overdue = !v.owed.IsZero() && is.Heard >= health.BanAfter && owed >= owing && owed < health.LastChance
	f.watch = v.ran || !v.asked.IsZero() || !v.owed.IsZero() && owed < health.LastChance
	return f
}
