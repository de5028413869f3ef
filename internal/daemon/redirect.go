package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/host/redirect"
)

// hangUp is how long a shutdown waits for the holders of a lease to remove the rules. Redirected connections are still
// served meanwhile.
const hangUp = 3 * time.Second

// redirection serves connections that the firewall redirects, on listeners received over the control socket. Without a
// redirect, nothing listens. The process that sends the listeners keeps them open too, and removes the rules before
// they are closed.
type redirection struct {
	d       *Daemon
	serving sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	servers []*proxy.Transparent // the last one has the current listeners
	leases  *leases
}

// leases is a group of leases that end together.
type leases struct {
	over    chan struct{} // closed when the leases must end
	running sync.WaitGroup
}

func newLeases() *leases { return &leases{over: make(chan struct{})} }

func newRedirection(d *Daemon) *redirection { return &redirection{d: d, leases: newLeases()} }

// lease serves on the listeners in place of earlier ones, which the rules no longer use. The caller must call
// running.Done on the returned leases when its own lease ends.
func (r *redirection) lease(listeners []net.Listener) (*leases, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("it is shutting down")
	}
	for _, old := range r.servers {
		r.serving.Go(func() {
			_ = old.Shutdown(context.Background()) // accepted connections run to their end
			r.mu.Lock()
			defer r.mu.Unlock()
			r.servers = slices.DeleteFunc(r.servers, func(s *proxy.Transparent) bool { return s == old })
		})
	}
	server := proxy.NewTransparent(r.d.proxy, redirect.Original)
	r.servers = append(r.servers, server)
	for _, l := range listeners {
		r.d.own.add(l.Addr())
	}
	r.serving.Go(func() {
		if err := server.Serve(listeners...); err != http.ErrServerClosed {
			r.d.log.Error("stopped serving redirected connections", "error", err)
			r.release()
		}
	})
	r.d.log.Info("listening for redirected connections", "address", listeners[0].Addr().String(), "marked", canMark())
	r.leases.running.Add(1)
	return r.leases, nil
}

// received returns the files as listeners, if all of them listen on loopback.
func received(files []*os.File) (all []net.Listener, err error) {
	if len(files) == 0 {
		err = errors.New("the request has no listener")
	}
	for _, f := range files {
		l, lerr := net.FileListener(f) // duplicates f
		f.Close()
		if lerr != nil {
			err = lerr
			continue
		}
		all = append(all, l)
		if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
			err = fmt.Errorf("%v is not a loopback address", l.Addr())
		}
	}
	if err != nil {
		for _, l := range all {
			l.Close()
		}
		return nil, err
	}
	return all, nil
}

// ownMark returns a function that returns the mark of this process's sockets, 0 if the process may not set one.
func ownMark() func() uint32 {
	mark := uint32(0)
	if canMark() {
		mark = redirect.Mark
	}
	return func() uint32 { return mark }
}

// canMark reports whether the process may mark sockets, which needs CAP_NET_ADMIN.
func canMark() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, redirect.Mark) == nil
}

// release ends the leases and waits briefly for their holders.
func (r *redirection) release() {
	r.mu.Lock()
	all := r.leases
	r.leases = newLeases()
	r.mu.Unlock()
	close(all.over)
	all.running.Wait() // each ends within hangUp
}

// shutdown waits for the rules to be removed, then stops accepting connections, and waits for requests until ctx ends.
func (r *redirection) shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	servers := slices.Clone(r.servers)
	r.mu.Unlock()
	r.release()
	var all sync.WaitGroup
	errs := make([]error, len(servers))
	for i, s := range servers {
		all.Go(func() { errs[i] = s.Shutdown(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// give handles a POST; see control.RedirectPath.
func (r *redirection) give(w http.ResponseWriter, req *http.Request) {
	found, err := received(control.Files(req.Context()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	all, err := r.lease(found)
	if err != nil {
		for _, l := range found {
			l.Close()
		}
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer all.running.Done()
	rules := control.Redirect{UID: uint32(os.Getuid()), Marked: canMark(), PID: os.Getpid()}
	tell := func() {
		_ = json.NewEncoder(w).Encode(rules)
		_ = http.NewResponseController(w).Flush()
	}
	for over := false; !over; {
		var changed <-chan struct{}
		rules.Links, rules.Around, changed = r.d.out.InUse()
		tell()
		select {
		case <-req.Context().Done():
			return
		case <-changed:
		case <-all.over:
			over = true
		}
	}
	rules.Over = true
	tell()
	select {
	case <-req.Context().Done():
	case <-time.After(hangUp):
		r.d.log.Warn("firewall rules may still redirect connections here; to remove them, run tributary redirect off")
	}
}

// take handles a DELETE.
func (r *redirection) take(w http.ResponseWriter, _ *http.Request) {
	r.release()
	w.WriteHeader(http.StatusNoContent)
}
