package relay

import (
	"io/fs"
	"os"
	"sync"
)

// roster is the list of clients that a server knows, from its state file. The file is read when it has changed, and not
// whenever a stranger asks. It is safe for concurrent use.
type roster struct {
	path string

	mu    sync.Mutex
	read  fs.FileInfo // state of the file when it was read; nil = never
	known serverState
}

// knows reports whether a key was paired, and not removed since. If the file cannot be read, no key is known.
func (r *roster) knows(client KeyID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
	_, ok := r.known.Clients[client]
	return ok && client != ""
}

// limits returns the limits of a key.
func (r *roster) limits(client KeyID) Limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
	return r.known.Limits[client]
}

func (r *roster) refresh() {
	now, err := os.Stat(r.path)
	if err == nil && r.read != nil && os.SameFile(now, r.read) && now.ModTime().Equal(r.read.ModTime()) &&
		now.Size() == r.read.Size() {
		return
	}
	r.read, r.known = now, serverState{}
	if err != nil || load(r.path, &r.known) != nil {
		r.read, r.known = nil, serverState{}
	}
	r.known.Key = Key{} // not needed here
}

// forget makes the next call read the file again even if it seems unchanged.
func (r *roster) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = nil
}
