package origin

import (
	"time"

	"github.com/tributary-http/tributary/internal/link"
)

const (
	// pausing is how long nothing comes over a connection that was running before the other end is asked whether it is there.
	pausing = time.Second
	// asking is for how long it is asked.
	asking = 6 * time.Second
	// running is the rate, in bytes per second, from which a connection counts as running.
	running = 8 << 10

	// A connection is overdue when nothing has come for silence, as long as package engine waits for a suspect, though an answer
	// is owed for at least owing. After hopeless there is nothing new to find out.
	silence  = 3 * time.Second
	owing    = 2 * time.Second
	hopeless = 15 * time.Second
)

// vigil finds out whether the other end of a connection has fallen silent. That is certain only while it owes an
// acknowledgment. One that stops to send may have nothing to say, so it is made to owe one: by a keep-alive, which costs less
// than a new connection and tells nobody else. It is pure: now is an argument.
type vigil struct {
	seen  time.Time // the last look
	total int64     // bytes carried until then
	ran   bool      // it was running when it carried something last
	owed  time.Time // since when an answer is owed; zero = none is
	asked time.Time // since when it is asked whether it is there; zero = it is not
}

// findings say what to do about a connection.
type findings struct {
	ask, relax bool // begin, or end, to ask the other end whether it is there
	overdue    bool // the link may be dead
	watch      bool // look again soon
}

// look takes the state of the connection.
func (v *vigil) look(now time.Time, is link.Vitals) (f findings) {
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
	f.overdue = !v.owed.IsZero() && is.Heard >= silence && owed >= owing && owed < hopeless
	f.watch = v.ran || !v.asked.IsZero() || !v.owed.IsZero() && owed < hopeless
	return f
}
