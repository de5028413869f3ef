package get

import (
	"os"
	"sync"
	"sync/atomic"
)

// checkpoint is after how many bytes a .part is brought to the disk.
const checkpoint = 64 << 20

// recorder writes to the sidecar how much of a .part is there without a gap, since bytes are written in any order and the size
// of the file does not show it: after each write, for a download that resumes in the same boot, and at each checkpoint, for the
// bytes that have reached the disk. The disk may be slow, so run has a goroutine of its own.
type recorder struct {
	part *os.File
	name string // of the sidecar
	due  chan struct{}

	prefix atomic.Int64

	mu   sync.Mutex
	side *os.File // the sidecar

	running sync.WaitGroup
	meta    sidecar // content of side; run owns it
	failed  error   // of a sync; of run
}

// newRecorder begins with the content of the sidecar side, of this name.
func newRecorder(part, side *os.File, name string, meta sidecar) *recorder {
	r := &recorder{part: part, name: name, due: make(chan struct{}, 1), side: side, meta: meta}
	r.prefix.Store(meta.Prefix)
	return r
}

// advance records that n bytes from the beginning on have been written.
func (r *recorder) advance(n int64) {
	before := r.prefix.Swap(n)
	r.mu.Lock()
	_, _ = r.side.WriteAt(prefixLine(n), 0) // if it fails, the old, smaller number stays, and is still true
	r.mu.Unlock()
	if before/checkpoint != n/checkpoint {
		select {
		case r.due <- struct{}{}:
		default: // the disk is behind
		}
	}
}

// run syncs received bytes to the disk, until stop.
func (r *recorder) run() {
	for range r.due {
		r.sync()
	}
}

func (r *recorder) sync() {
	if r.failed != nil {
		return
	}
	now := r.meta
	now.Prefix = r.prefix.Load()
	if r.failed = r.part.Sync(); r.failed != nil {
		return
	}
	now.Synced = now.Prefix
	side, err := now.create(r.name)
	if err != nil {
		return // the one that is there is true, too
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.side.Close()
	r.side, r.meta = side, now
}

// stop ends run, and returns the content of the sidecar and the error of syncing.
func (r *recorder) stop() (sidecar, error) {
	close(r.due)
	r.running.Wait()
	r.side.Close()
	r.meta.Prefix = r.prefix.Load()
	return r.meta, r.failed
}
