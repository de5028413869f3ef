package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/control"
	"github.com/tributary-http/tributary/internal/proxy"
	"github.com/tributary-http/tributary/internal/redirect"
)

// hangUp is how long the end waits for those who hold a lease to remove the rules: until then redirected connections are
// still served.
const hangUp = 3 * time.Second

// redirection is the listener for connections that the firewall redirects. It is opened by the first request for it over
// the control socket, so that nothing listens where nobody redirects, and stays open to the end: rules that outlive their
// keeper find it.
type redirection struct {
	d       *Daemon
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool
	server *proxy.Transparent // nil = not opened
	found  control.Redirect
	leases *leases
}

// leases are those that end together.
type leases struct {
	over    chan struct{} // closed when they must end
	running sync.WaitGroup
}

func newLeases() *leases { return &leases{over: make(chan struct{})} }

func newRedirection(d *Daemon) *redirection { return &redirection{d: d, leases: newLeases()} }

// lease opens the listener, if it is not. The caller must call Done of the leases' running at the end of its own.
func (r *redirection) lease() (control.Redirect, *leases, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return control.Redirect{}, nil, errors.New("it is shutting down")
	}
	if r.server == nil {
		if err := r.open(); err != nil {
			return control.Redirect{}, nil, err
		}
	}
	r.leases.running.Add(1)
	return r.found, r.leases, nil
}

// open listens. The listeners are of one family each, see redirect.Original.
func (r *redirection) open() error {
	v4, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := v4.Addr().(*net.TCPAddr).Port
	all := []net.Listener{v4}
	if v6, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", port)); err == nil { // the machine may have no IPv6
		all = append(all, v6)
	}
	for _, l := range all {
		r.d.own.add(l.Addr())
	}
	r.found = control.Redirect{
		Port: uint16(port), IPv6: len(all) > 1, UID: uint32(os.Getuid()), Marked: canMark(), PID: os.Getpid(),
	}
	server := proxy.NewTransparent(r.d.proxy, redirect.Original)
	r.server = server
	r.serving.Go(func() {
		if err := server.Serve(all...); err != http.ErrServerClosed {
			r.d.log.Error("redirected connections are not served any more", "error", err)
			r.release()
		}
	})
	r.d.log.Info("listening for redirected connections", "port", port, "marked", r.found.Marked)
	return nil
}

// ownMark returns the mark of this process's sockets, 0 if it may set none.
func ownMark() func() uint32 {
	mark := uint32(0)
	if canMark() {
		mark = redirect.Mark
	}
	return func() uint32 { return mark }
}

// canMark reports whether sockets may be marked: it takes CAP_NET_ADMIN.
func canMark() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, redirect.Mark) == nil
}

// release ends the leases and waits for those who hold them, a moment at most.
func (r *redirection) release() {
	r.mu.Lock()
	all := r.leases
	r.leases = newLeases()
	r.mu.Unlock()
	close(all.over)
	all.running.Wait() // they end by themselves, see hangUp
}

// shutdown lets the rules be removed, then takes no more connections, and waits for requests until ctx ends.
func (r *redirection) shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	server := r.server
	r.mu.Unlock()
	r.release()
	if server == nil {
		return nil
	}
	return server.Shutdown(ctx)
}

// give answers a POST: see control.RedirectPath.
func (r *redirection) give(w http.ResponseWriter, req *http.Request) {
	found, all, err := r.lease()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer all.running.Done()
	flush := http.NewResponseController(w)
	_ = json.NewEncoder(w).Encode(found)
	_ = flush.Flush()
	select {
	case <-req.Context().Done():
		return
	case <-all.over:
	}
	_, _ = w.Write([]byte("end\n"))
	_ = flush.Flush()
	select {
	case <-req.Context().Done():
	case <-time.After(hangUp):
		r.d.log.Warn("rules may still redirect connections here: tributary redirect off")
	}
}

// take answers a DELETE.
func (r *redirection) take(w http.ResponseWriter, _ *http.Request) {
	r.release()
	w.WriteHeader(http.StatusNoContent)
}
