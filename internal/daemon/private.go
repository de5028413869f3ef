package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/inbound"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// PrivateOptions configures a private proxy.
type PrivateOptions struct {
	Users     []uint32       // user IDs; all others get 403
	Roots     *x509.CertPool // authorities that servers are verified with; nil = the system's
	Intercept *intercept.Interceptor
	// Store says that programs find the certificate in the system's store, and not by variables only.
	Store bool
	// files with the certificate: a program whose arguments name it trusts the certificate
	Folder  string
	Carried func(link string, bytes int64)   // see proxy.Config
	Refused func(destination, reason string) // see proxy.Config
}

// privateDrainTime is how long a private proxy waits for the last bytes of programs that have ended.
const privateDrainTime = 2 * time.Second

// Private is a proxy over the links of this machine for one command, on a free loopback port. It allows the same
// destinations as the service, since the command may act for others, as a browser does for its pages.
type Private struct {
	URL string

	d      *Daemon
	ln     net.Listener
	front  *inbound.Server
	served chan struct{} // closed when front has stopped serving; nil = it never started
	unlink func()
}

// NewPrivate opens the port. Connections wait until Start. The caller must call Stop.
func NewPrivate(cfg config.Config, log *slog.Logger, o PrivateOptions) (*Private, error) {
	SaveMemory()
	return NewPrivateWith(cfg, log, o, transport.Config{
		Source:  &discover.Netlink{Options: transport.LinkOptions(cfg)},
		Binder:  link.Device{},
		History: transport.HistoryFile(cfg),
		Roots:   o.Roots,
	})
}

// NewPrivateWith is like NewPrivate, but takes what t sets: links, dialers, authorities.
func NewPrivateWith(cfg config.Config, log *slog.Logger, o PrivateOptions, t transport.Config) (*Private, error) {
	d := newDaemon(cfg, log)
	d.private = &o
	if err := d.build("run", t); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for the command: %w", err)
	}
	d.own.add(ln.Addr())
	return &Private{URL: "http://" + ln.Addr().String(), d: d, ln: ln, front: proxy.NewServer(d.proxy)}, nil
}

// Start serves until Stop. It waits briefly for the first link.
func (p *Private) Start(ctx context.Context) (err error) {
	if p.unlink, err = p.d.out.Start(ctx); err != nil {
		return err
	}
	p.d.out.Await(ctx)
	p.served = make(chan struct{})
	go func() {
		defer close(p.served)
		if err := p.front.Serve(p.ln); !errors.Is(err, http.ErrServerClosed) {
			p.d.log.Error("the private proxy of the command stopped", "error", err)
		}
	}()
	return nil
}

// Stop aborts all requests and waits for them to end.
func (p *Private) Stop() {
	over, cancel := context.WithTimeout(context.Background(), privateDrainTime)
	defer cancel()
	_ = p.front.Close()
	_ = p.ln.Close()             // the server closes it only if it has started
	_ = p.d.proxy.Shutdown(over) // resets what still runs when over ends
	if p.served != nil {
		<-p.served
	}
	p.d.out.Close()
	if p.unlink != nil {
		p.unlink()
	}
}
