package partial

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
)

// checkpoint is the number of bytes after which a file is synced to the disk.
const checkpoint = 64 << 20

// Recorder keeps a claim up to date while its file is written. The size of the file does not show how many bytes are
// there, since they are written in any order. The count is recorded after each write, for a download that resumes in
// the same boot, and at each checkpoint for the bytes that have reached the disk. The disk may be slow, so this has its
// own goroutine.
//
// Writing, Advance and the methods after Stop belong to one goroutine. A nil Recorder records nothing.
type Recorder struct {
	store  Store
	part   *os.File
	path   string // of the claim
	due    chan struct{}
	prefix atomic.Int64

	mu    sync.Mutex
	side  *os.File // the claim
	count count    // its first line

	running sync.WaitGroup
	stopped bool
	claim   claim // the content of side, except for the count; owned by run until Stop
	failed  error // error of a sync; owned by run until Stop
}

func newRecorder(s Store, part, side *os.File, path string, c claim) *Recorder {
	r := &Recorder{
		store: s,
		part:  part,
		path:  path,
		due:   make(chan struct{}, 1),
		side:  side,
		count: c.count,
		claim: c,
	}
	r.prefix.Store(c.prefix)
	r.running.Go(func() {
		for range r.due {
			r.Sync()
		}
	})
	return r
}

// Writing records that the file will change.
func (r *Recorder) Writing() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count.writing = true
	r.record() // also renews the time of the claim
}

// record writes the first line. If that fails, an older line stays, and the file has changed since: it is not resumed.
func (r *Recorder) record() { _, _ = r.side.WriteAt(r.count.line(), 0) }

// Advance records that the first n bytes have been written.
func (r *Recorder) Advance(n int64) {
	if r == nil {
		return
	}
	is, err := statusOf(r.part)
	if err != nil {
		return
	}
	before := r.prefix.Swap(n)
	r.mu.Lock()
	r.count = count{prefix: n, changed: is.changed}
	r.record()
	r.mu.Unlock()
	if before/checkpoint != n/checkpoint && !r.stopped {
		select {
		case r.due <- struct{}{}:
		default: // the disk is behind
		}
	}
}

// Sync syncs the received bytes to the disk, and records that.
func (r *Recorder) Sync() {
	if r.failed != nil {
		return
	}
	n := r.prefix.Load()
	is, err := statusOf(r.part)
	if r.failed = errors.Join(err, r.part.Sync()); r.failed != nil {
		return
	}
	r.claim.Synced, r.claim.AtSync = n, is.changed
	r.replace()
}

// replace writes a new claim with the current count. If that fails, the existing one is still true.
func (r *Recorder) replace() {
	c := r.claim
	r.mu.Lock()
	c.count = r.count
	r.mu.Unlock()
	c.writing = c.writing || !r.stopped // a write may begin before the new claim is in place
	side, err := c.create(r.path)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.side.Close()
	r.side = side
	r.record()
}

// Stop ends the background work and returns the error of a sync.
func (r *Recorder) Stop() error {
	if r == nil || r.stopped {
		return nil
	}
	close(r.due)
	r.running.Wait()
	r.stopped = true
	return r.failed
}

// Keep records that the download ended with this number of bytes, and closes the claim. synced reports whether all are
// on the disk.
func (r *Recorder) Keep(n int64, synced bool) {
	if r == nil {
		return
	}
	r.Advance(n) // in place, which works on a full disk, too
	r.claim.Closed, r.claim.Synced = true, min(r.claim.Synced, n)
	if synced {
		r.claim.Synced, r.claim.AtSync = n, r.count.changed
	}
	r.replace()
	r.side.Close()
}

// Complete records that the synced file has all of its bytes and will be renamed to this name.
func (r *Recorder) Complete(file string, size int64) {
	if r == nil {
		return
	}
	path, err := r.store.claimOf(file + Suffix)
	if err != nil {
		return
	}
	r.Advance(size)
	old := r.path
	r.path, r.claim.Closed, r.claim.Complete, r.claim.Synced = path, true, true, size
	r.replace()
	if old != path {
		_ = os.Remove(old)
	}
}

// Remove removes the claim: nobody will ask for it.
func (r *Recorder) Remove() {
	if r == nil {
		return
	}
	_ = os.Remove(r.path)
	r.side.Close()
}

// Close leaves the claim as it is.
func (r *Recorder) Close() {
	if r != nil {
		r.side.Close()
	}
}
