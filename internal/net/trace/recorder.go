package trace

import (
	"slices"
	"sync"
	"time"
)

// Recorder records a Trace. Create it with NewRecorder. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	trace Trace
}

// NewRecorder returns a Recorder of a trace that begins now.
func NewRecorder(now time.Time) *Recorder {
	return &Recorder{trace: Trace{Began: now, Step: Step}}
}

// Add counts bytes that a link carried at the time now.
func (r *Recorder) Add(now time.Time, link string, down, up int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.trace.Links, func(l Link) bool { return l.Name == link })
	if i < 0 {
		i, r.trace.Links = len(r.trace.Links), append(r.trace.Links, Link{Name: link})
	}
	l, at := &r.trace.Links[i], int(max(0, now.Sub(r.trace.Began))/Step)
	l.Down, l.Up = count(l.Down, at, down), count(l.Up, at, up)
}

// count adds n to a step.
func count(steps []int64, at int, n int64) []int64 {
	if n == 0 {
		return steps
	}
	for len(steps) <= at {
		steps = append(steps, 0)
	}
	steps[at] += n
	return steps
}

// Trace returns the record so far, with links in the order of their first bytes.
func (r *Recorder) Trace() Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.trace
	t.Links = nil
	for _, l := range r.trace.Links {
		t.Links = append(t.Links, Link{l.Name, slices.Clone(l.Down), slices.Clone(l.Up)})
	}
	return t
}
