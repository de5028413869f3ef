package daemon

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/link"
)

// firstLink is how long a command waits for a link when there is none: after a resume from suspend it takes seconds until
// an interface has an address again.
const firstLink = 5 * time.Second

// Fetch runs do with an engine that has all links, as the proxy has, but nothing listens. Certificates of https origins are
// verified against roots, nil for the system's. It returns do's error when everything has ended; the links stay up until
// then, ctx or not.
func Fetch(
	ctx context.Context, cfg config.Config, roots *x509.CertPool, log *slog.Logger, do func(context.Context, *engine.Engine) error,
) error {
	saveMemory()
	o := newFetch(cfg, log, &link.Netlink{Options: options(cfg)})
	return o.fetch(ctx, o.dialing(link.Device{}), roots, do)
}

// everywhere is every address. Whoever runs a command may reach what it can reach; what a proxy denies, it denies to others
// (R183). That a private network belongs to one link (R184) holds all the same.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

func newFetch(cfg config.Config, log *slog.Logger, source link.Source) *outward {
	o := newOutward(cfg, log, source)
	o.reach.Allow = everywhere
	return o
}

func (o *outward) fetch(ctx context.Context, dial dialFunc, roots *x509.CertPool, do func(context.Context, *engine.Engine) error) error {
	if err := o.connect(dial, roots, func(name string) { o.pool.DropLink(name) }, newJournal(o.log)); err != nil {
		return err
	}
	defer o.pool.Close()
	stop, err := o.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	select {
	case <-o.found:
	case <-ctx.Done():
	case <-time.After(firstLink):
	}
	return do(ctx, o.engine)
}
