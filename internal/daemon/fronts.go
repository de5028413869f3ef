package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/front/admin"
	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/front/gateway"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/front/rpc"
)

// front is one way in for clients: a listener and its server.
type front struct {
	// listen opens the listener. It returns nil and no error if the configuration has no such front.
	listen func() (net.Listener, error)
	// without, if not empty, is the warning when listen fails. The other fronts then work without this one.
	without string
	// server returns the server, when all fronts listen.
	server func(ln net.Listener) server
	last   bool // it serves until all others have ended

	ln      net.Listener // nil = there is none
	running server
}

// server serves a listener until Shutdown.
type server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

// fronts returns the ways in that the configuration asks for, in the order in which they listen. The proxy comes last:
// once a client can connect to it, the others listen, too.
func (d *Daemon) fronts() (all []*front) {
	at := func(addr, without string, server func(ln net.Listener) server) *front {
		f := &front{without: without, server: server}
		f.listen = func() (net.Listener, error) {
			if addr == "" {
				return nil, nil
			}
			return d.sockets.listen(addr)
		}
		all = append(all, f)
		return f
	}
	pages := at(d.cfg.Admin, "", d.adminServer)
	objects := ""
	if d.appBridge != nil { // the app needs the proxy, not the gateway
		objects = "the gateway does not work"
	}
	at(d.cfg.Gateway, objects, func(ln net.Listener) server {
		d.gatewayAt = ln.Addr()
		return gateway.NewServer(d.gateway)
	})
	orders := at(d.cfg.RPC, "", func(net.Listener) server { return rpcServer{d.rpc.server.HTTP(), d.rpc.server} })
	at(d.cfg.SOCKS, "", func(net.Listener) server { return proxy.NewSOCKS(d.proxy) })
	all = append(all, &front{
		without: "the live page cannot change downloads",
		listen: func() (net.Listener, error) {
			if pages.ln == nil || orders.ln == nil {
				return nil, nil
			}
			return rpc.ListenPage()
		},
		server: func(ln net.Listener) server { return d.rpc.server.Page(ln, admin.Live(d.live.Handler(mayWatch))) },
	})
	all = append(all, &front{
		listen: func() (net.Listener, error) {
			ln, err := d.sockets.listen(d.cfg.Listen)
			if err == nil {
				d.at = ln.Addr()
			}
			return ln, err
		},
		server: func(net.Listener) server { return proxy.NewServer(d.proxy) },
	})
	return append(all, &front{
		listen: d.listenControl,
		server: func(net.Listener) server {
			s := shortServer(d.controlHandler())
			s.ConnContext = control.ConnContext
			s.WriteTimeout = 0 // a lease has no time limit
			return s
		},
		last: true, // a drain can be watched
	})
}

// listen opens the listeners of all fronts, or none.
func (d *Daemon) listen(all []*front) (err error) {
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for _, f := range all {
		if f.ln, err = f.listen(); err != nil {
			f.ln = nil
			if f.without == "" {
				return err
			}
			d.log.Warn(f.without, "error", err)
		}
		if f.ln == nil {
			continue
		}
		if _, local := f.ln.Addr().(*net.UnixAddr); !local {
			d.own.add(f.ln.Addr())
		}
	}
	return d.sockets.left()
}

// closeAll closes the listeners of fronts that do not serve.
func closeAll(all []*front) {
	for _, f := range all {
		if f.ln != nil {
			f.ln.Close()
		}
	}
}

// serveAll makes all fronts that listen serve. failed gets the errors of their servers.
func serveAll(all []*front, parts *sync.WaitGroup, failed chan<- error) {
	for _, f := range all {
		if f.ln != nil {
			f.running = f.server(f.ln)
		}
	}
	for _, f := range all {
		if f.running != nil {
			parts.Go(func() { failed <- f.running.Serve(f.ln) })
		}
	}
}

// shutDown ends the fronts that serve, except those that are last. Requests under way may continue until ctx ends.
func shutDown(ctx context.Context, all []*front) error {
	var ending sync.WaitGroup
	errs := make([]error, len(all))
	for i, f := range all {
		if f.running == nil || f.last {
			continue
		}
		ending.Go(func() {
			errs[i] = f.running.Shutdown(ctx)
			if c, ok := f.running.(io.Closer); ok && errs[i] != nil {
				c.Close()
			}
		})
	}
	ending.Wait()
	return errors.Join(errs...)
}

// rpcServer is the server of the RPC port, with its sockets.
type rpcServer struct {
	*http.Server
	sockets *rpc.Server
}

// Shutdown ends the sockets, too.
func (s rpcServer) Shutdown(ctx context.Context) error {
	defer s.sockets.Close()
	return s.Server.Shutdown(ctx)
}

// adminServer returns the server of the read-only pages.
func (d *Daemon) adminServer(net.Listener) server {
	s := shortServer(admin.Handler(d.live.Handler(mayWatch), d.metrics.Handler(), d.out.Status, d.at))
	visitors := admission.Control{
		Limits: admission.Limits{Each: 64, Sure: 8, All: 128}, Named: []uint32{0, uint32(os.Getuid())},
	}
	visitors.Guard(s, d.owner, nil)
	return s
}

// mayWatch reports whether the requesting user may see the live page. Only the user who runs the proxy and root may.
func mayWatch(r *http.Request) bool {
	u := admission.UserFrom(r.Context())
	return u.Known() && (u.UID == 0 || u.UID == int64(os.Getuid()))
}

// shortServer returns a server for small pages that does not wait for slow or idle clients.
func shortServer(h http.Handler) *http.Server {
	const limit = 10 * time.Second
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: limit,
		ReadTimeout:       limit,
		WriteTimeout:      3 * limit,
		IdleTimeout:       limit,
		MaxHeaderBytes:    16 << 10,
	}
}
