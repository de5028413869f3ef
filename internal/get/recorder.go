package get

import (
	"os"
	"sync"
	"sync/atomic"
)

// checkpoint is the number of bytes after which a .part is synced to the disk.
const checkpoint = 64 << 20

// recorder writes to the sidecar how many bytes a .part has without a gap. The size of the file does not show this, since bytes are
// written in any order. It records the count after each write, for a download that resumes in the same boot, and at each
// checkpoint, for the bytes that have reached the disk. The disk may be slow, so run has its own goroutine.
type recorder struct {
	part *os.File
	name string // of the sidecar
	due  chan struct{}

	prefix atomic.Int64

	mu   sync.Mutex
	side *os.File // the sidecar

	running sync.WaitGroup
	meta    sidecar // content of side; owned by run
	failed  error   // error of a sync; owned by run
}

// newRecorder returns a recorder that continues the open sidecar side with this name and content.
func newRecorder(part, side *os.File, name string, meta sidecar) *recorder {
	r := &recorder{part: part, name: name, due: make(chan struct{}, 1), side: side, meta: meta}
	r.prefix.Store(meta.Prefix)
	return r
}

// advance records that the first n bytes have been written.
func (r *recorder) advance(n int64) {
	before := r.prefix.Swap(n)
	r.mu.Lock()
	_, _ = r.side.WriteAt(prefixLine(n), 0) // if this fails, the old, smaller number stays and is still true
	r.mu.Unlock()
	if before/checkpoint != n/checkpoint {
		select {
		case r.due <- struct{}{}:
		default: // the disk is behind
		}
	}
}

// run syncs received bytes to the disk until stop.
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
		return // the existing sidecar is still true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.side.Close()
	r.side, r.meta = side, now
}

// stop ends run, and returns the content of the sidecar and the error of a sync.
func (r *recorder) stop() (sidecar, error) {
	close(r.due)
	r.running.Wait()
	r.side.Close()
	r.meta.Prefix = r.prefix.Load()
	return r.meta, r.failed
}
