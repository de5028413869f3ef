package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/host/partial"
)

// Config configures a Queue. All fields except Agent must be set, and Free only for orders that are Unmetered.
type Config struct {
	Transport     http.RoundTripper
	Dir           string // folder for files, an absolute path
	State         string // file of the list
	Partial       partial.Store
	MaxConcurrent int    // number of downloads that may run concurrently
	Agent         string // User-Agent for orders without one
	Log           *slog.Logger

	// Free returns a context whose requests use only links that cost nothing.
	Free func(context.Context) context.Context
}

// Limits on the list.
const (
	maxDownloads = 5000 // downloads that are not over
	maxStopped   = 1000 // downloads that are over; the oldest one is dropped first
	// forOrders is the share of the largest file that orders may fill. The rest is for what is added to them while they
	// run.
	forOrders = 4
)

// rateTime is the interval at which the progress of downloads is measured.
const rateTime = time.Second

// Errors of a Queue.
var (
	ErrClosed = errors.New("the proxy is shutting down")
	ErrURLs   = errors.New("only http and https URLs can be downloaded")
	ErrFull   = fmt.Errorf("%d downloads are already waiting", maxDownloads)
	ErrLarge  = errors.New("the list of downloads has no room for this order: its fields and URLs are too long")
)

// NotFoundError reports that a download does not exist.
type NotFoundError struct{ GID string }

func (e NotFoundError) Error() string { return fmt.Sprintf("GID %s is not found", e.GID) }

// StateError reports that an operation is not possible in the current state of a download.
type StateError struct{ GID string }

func (e StateError) Error() string { return fmt.Sprintf("GID#%s is in another state", e.GID) }

// Event is a change of a download.
type Event struct {
	GID    string
	Status Status // Active, Paused, Complete, Failed or Removed
}

// Queue is a list of downloads. Make it with New; its methods work while Run runs.
type Queue struct {
	Config
	commands chan func()
	over     chan struct{} // closed when Run returns
	ends     chan end      // of downloads

	// Owned by Run.
	active  []*task
	waiting []*task // in the order in which they start; includes paused ones
	stopped []*task // the oldest first
	ever    int     // number of downloads that have ended since the start
	dirty   bool    // the file is older than the list
	size    int     // bytes of the file
	most    int     // bytes that it may have, as a larger one could not be read again
	closing bool    // no more downloads may start
	running sync.WaitGroup
	hear    map[chan Event]bool
}

// end is the outcome of a download.
type end struct {
	task   *task
	result get.Result
	err    error
}

// New returns a Queue with the downloads that its file lists.
func New(c Config) *Queue {
	return &Queue{
		Config:   c,
		commands: make(chan func()),
		over:     make(chan struct{}),
		ends:     make(chan end),
		hear:     map[chan Event]bool{},
		most:     maxState,
	}
}

// Run runs downloads until ctx ends and the running ones have stopped; they stay in the list. It returns an error if
// the list cannot be read.
func (q *Queue) Run(ctx context.Context) error {
	defer close(q.over)
	unlock, err := q.load(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	tick := time.NewTicker(rateTime)
	defer tick.Stop()
	done := ctx.Done()
	for {
		q.start()
		if q.closing && len(q.active) == 0 {
			break
		}
		var ticks <-chan time.Time
		if len(q.active) > 0 {
			ticks = tick.C
		}
		select {
		case f := <-q.commands:
			f()
		case e := <-q.ends:
			q.ended(e)
			if err := q.save(); err != nil {
				q.Log.Error("cannot save the list of downloads", "error", err)
			} else if e.err == nil {
				q.Partial.Forget(e.result.File) // the list has it as complete
			}
		case <-ticks:
			q.measure()
		case <-done:
			done, q.closing = nil, true
			for _, t := range q.active {
				t.cancel()
			}
		}
	}
	q.running.Wait()
	for c := range q.hear {
		close(c)
	}
	return q.save()
}

// ask lets Run call f, and save the list if f changed it.
func (q *Queue) ask(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case q.commands <- func() {
		err := f()
		if err == nil {
			err = q.save()
		}
		answer <- err
	}:
		return <-answer
	case <-q.over:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) do(f func() error) error { return q.ask(context.Background(), f) }

// start starts downloads up to the limit.
func (q *Queue) start() {
	for !q.closing && len(q.active) < q.MaxConcurrent {
		i := slices.IndexFunc(q.waiting, func(t *task) bool { return t.Status == Waiting })
		if i < 0 {
			return
		}
		t := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.active = append(q.active, t)
		ctx, cancel := context.WithCancel(context.Background()) // canceled by Run when its own context ends
		t.Status, t.cancel, t.want, t.last, t.Rate = Active, cancel, "", t.Have, 0
		t.meter.Store(nil)
		job := t.now()
		q.running.Go(func() {
			defer cancel()
			r, err := q.download(ctx, t, job)
			q.ends <- end{t, r, err}
		})
		q.tell(t)
	}
}

// ended records the end of a download.
func (q *Queue) ended(e end) {
	t := e.task
	now := t.now()
	q.active = slices.DeleteFunc(q.active, func(o *task) bool { return o == t })
	t.Size, t.Have, t.Rate = now.Size, now.Prefix, 0
	q.dirty = true
	failure := (*get.Error)(nil)
	switch {
	case e.err == nil:
		t.Status, t.Size, t.Have, t.File = Complete, e.result.Size, e.result.Size, e.result.File
	case t.want == Removed:
		t.Status = Removed
		q.discard(t)
	case errors.As(e.err, &failure) && failure.Kind != get.Canceled:
		t.Status, t.Kind, t.HTTP, t.Message = Failed, failure.Kind, failure.Status, failure.Err.Error()
		q.Log.Debug("a download failed", "gid", t.GID, "error", e.err)
	case t.want == Paused:
		t.Status = Paused
	default: // to start again
		t.Status = Waiting
		q.waiting = slices.Insert(q.waiting, 0, t)
		return
	}
	if t.Status == Paused {
		q.waiting = slices.Insert(q.waiting, 0, t)
	} else {
		q.stopped = append(q.stopped, t)
		q.ever++
		if n := len(q.stopped) - maxStopped; n > 0 {
			q.stopped = slices.Delete(q.stopped, 0, n)
		}
	}
	q.tell(t)
}

// measure updates the rates of active downloads.
func (q *Queue) measure() {
	for _, t := range q.active {
		have := t.now().Have
		t.Rate = (t.Rate + float64(max(have-t.last, 0))/rateTime.Seconds()) / 2
		t.last = have
	}
}

// tell notifies listeners that the status of a download changed. It drops listeners that are far behind.
func (q *Queue) tell(t *task) {
	for c := range q.hear {
		select {
		case c <- Event{t.GID, t.Status}:
		default:
			delete(q.hear, c)
			close(c)
		}
	}
}

// Listen returns a channel of changes. The channel is closed when the queue ends, or when its reader falls far behind.
// The caller must call stop when it no longer reads.
func (q *Queue) Listen() (events <-chan Event, stop func()) {
	c := make(chan Event, 1000)
	if q.do(func() error { q.hear[c] = true; return nil }) != nil {
		close(c)
	}
	return c, func() {
		_ = q.do(func() error { delete(q.hear, c); return nil })
	}
}

// list returns all downloads.
func (q *Queue) list() []*task { return slices.Concat(q.active, q.waiting, q.stopped) }

// find returns the download with a GID; a unique prefix is enough.
func (q *Queue) find(gid string) (found *task, err error) {
	for _, t := range q.list() {
		switch {
		case t.GID == gid:
			return t, nil
		case strings.HasPrefix(t.GID, gid) && found != nil:
			err = fmt.Errorf("GID %s is not unique", gid)
		case strings.HasPrefix(t.GID, gid):
			found = t
		}
	}
	if found == nil {
		err = NotFoundError{gid}
	}
	return found, err
}

// with lets Run call f with the download of a GID.
func (q *Queue) with(gid string, f func(t *task) error) (full string, err error) {
	err = q.do(func() error {
		t, err := q.find(gid)
		if err != nil {
			return err
		}
		full = t.GID
		return f(t)
	})
	return full, err
}

// Add adds a download at a place in the waiting list, where 0 is the first and a negative place is the last. It returns
// the GID.
func (q *Queue) Add(o Order, paused bool, place int) (string, error) {
	o, err := q.check(o)
	if err != nil {
		return "", err
	}
	err = q.do(func() error {
		if q.closing {
			return ErrClosed
		}
		if len(q.active)+len(q.waiting) >= maxDownloads {
			return ErrFull
		}
		if !q.room(o) {
			return ErrLarge
		}
		if o.GID == "" {
			o.GID = newID()
		} else if _, err := q.find(o.GID); err == nil {
			return fmt.Errorf("GID %s is in use", o.GID)
		}
		t := &task{Download: Download{Order: o, Status: Waiting, Size: -1}}
		if paused {
			t.Status = Paused
		}
		if place < 0 || place > len(q.waiting) {
			place = len(q.waiting)
		}
		q.waiting = slices.Insert(q.waiting, place, t)
		q.dirty = true
		if err := q.save(); err != nil {
			q.waiting = slices.DeleteFunc(q.waiting, func(o *task) bool { return o == t })
			return err
		}
		return nil
	})
	return o.GID, err
}

// Get returns a download.
func (q *Queue) Get(gid string) (d Download, err error) {
	_, err = q.with(gid, func(t *task) error { d = t.now(); return nil })
	return d, err
}

// Lists returns all downloads: active ones, waiting or paused ones in order, and stopped ones, the oldest first. ever
// is the number of downloads that have ended since the start.
func (q *Queue) Lists() (active, waiting, stopped []Download, ever int, err error) {
	err = q.do(func() error {
		for _, l := range []struct {
			from []*task
			to   *[]Download
		}{{q.active, &active}, {q.waiting, &waiting}, {q.stopped, &stopped}} {
			for _, t := range l.from {
				*l.to = append(*l.to, t.now())
			}
		}
		ever = q.ever
		return nil
	})
	return active, waiting, stopped, ever, err
}

// stop ends an active download, which then gets the status want.
func (q *Queue) stop(t *task, want Status) {
	t.want, q.dirty = want, true
	t.cancel()
}

// Pause pauses a download: at once, or if it is active, when it has stopped.
func (q *Queue) Pause(gid string) (string, error) {
	return q.with(gid, func(t *task) error {
		switch {
		case t.Status == Active && t.want == "":
			q.stop(t, Paused)
		case t.Status == Waiting:
			t.Status, q.dirty = Paused, true
		default:
			return StateError{t.GID}
		}
		return nil
	})
}

// PauseAll pauses all downloads.
func (q *Queue) PauseAll() error {
	return q.do(func() error {
		for _, t := range q.active {
			if t.want == "" {
				q.stop(t, Paused)
			}
		}
		return q.turn(Waiting, Paused)
	})
}

// turn changes the status of downloads in the waiting list.
func (q *Queue) turn(from, to Status) error {
	for _, t := range q.waiting {
		if t.Status == from {
			t.Status, q.dirty = to, true
		}
	}
	return nil
}

// Unpause lets a download wait for its turn.
func (q *Queue) Unpause(gid string) (string, error) {
	return q.with(gid, func(t *task) error {
		if t.Status != Paused {
			return StateError{t.GID}
		}
		t.Status, q.dirty = Waiting, true
		return nil
	})
}

// UnpauseAll lets all paused downloads wait for their turn.
func (q *Queue) UnpauseAll() error {
	return q.do(func() error { return q.turn(Paused, Waiting) })
}

// Remove ends a download and deletes its incomplete file. A download that does not run is forgotten immediately.
func (q *Queue) Remove(gid string) (string, error) {
	return q.with(gid, func(t *task) error {
		switch {
		case t.Status == Active:
			q.stop(t, Removed)
		case t.Status.Stopped():
			return StateError{t.GID}
		default:
			q.discard(t)
			q.waiting = slices.DeleteFunc(q.waiting, func(o *task) bool { return o == t })
			q.dirty = true
		}
		return nil
	})
}

// discard removes the incomplete file of a download.
func (q *Queue) discard(t *task) {
	if err := q.Partial.Discard(t.File, t.URLs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		q.Log.Debug("cannot remove the incomplete file of a download", "gid", t.GID, "error", err)
	}
}

// Forget removes a finished download from the list.
func (q *Queue) Forget(gid string) (string, error) {
	return q.with(gid, func(t *task) error {
		if !t.Status.Stopped() {
			return StateError{t.GID}
		}
		q.stopped = slices.DeleteFunc(q.stopped, func(o *task) bool { return o == t })
		q.dirty = true
		return nil
	})
}

// Purge removes all finished downloads from the list.
func (q *Queue) Purge() error {
	return q.do(func() error { q.stopped, q.dirty = nil, true; return nil })
}

// Move moves a waiting download to the place that place(from, last) returns, limited to the range from 0, the first, to
// last. It returns the new place.
func (q *Queue) Move(gid string, place func(from, last int) int) (to int, err error) {
	_, err = q.with(gid, func(t *task) error {
		from := slices.Index(q.waiting, t)
		if from < 0 {
			return StateError{t.GID}
		}
		last := len(q.waiting) - 1
		to = min(max(place(from, last), 0), last)
		q.waiting = slices.Insert(slices.Delete(q.waiting, from, from+1), to, t)
		q.dirty = true
		return nil
	})
	return to, err
}

// Change changes the order of a download that is not over. If it is active, it restarts from where it is. A file that
// has a name keeps it.
func (q *Queue) Change(gid string, change func(*Order)) error {
	_, err := q.with(gid, func(t *task) error {
		if t.Status.Stopped() {
			return StateError{t.GID}
		}
		o := t.now().Order
		change(&o)
		o.GID = t.GID
		o, err := q.check(o)
		if err != nil {
			return err
		}
		if !q.room(o) {
			return ErrLarge
		}
		t.Order, q.dirty = o, true
		if t.Status == Active && t.want == "" {
			q.stop(t, Waiting)
		}
		return nil
	})
	return err
}

// SetMaxConcurrent changes how many downloads may run concurrently, until the next start of the program. Running
// downloads continue.
func (q *Queue) SetMaxConcurrent(n int) error {
	return q.do(func() error { q.MaxConcurrent = n; return nil })
}

// Concurrent returns how many downloads may run concurrently.
func (q *Queue) Concurrent() (n int, err error) {
	err = q.do(func() error { n = q.MaxConcurrent; return nil })
	return n, err
}
