package transport

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// firstLink is how long Await waits for a link. A person who forgot the cable should not wait for long.
const firstLink = time.Second

// Everywhere contains every address. The user of a command may connect to any address; a proxy denies addresses to
// others (R183). The rule that a private network belongs to one link (R184) applies anyway.
var Everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// Own returns a Transport over the links of this machine for the program's own requests. Certificates of https origins
// are verified against roots, nil = the system's.
func Own(cfg config.Config, roots *x509.CertPool, log *slog.Logger) (*Transport, error) {
	return New(Config{
		Settings: cfg, Log: log, Source: &discover.Netlink{Options: LinkOptions(cfg)}, Binder: link.Device{}, Roots: roots,
		Allow:   Everywhere,
		History: HistoryFile(cfg),
	})
}

// Await waits until there is a link, for a few seconds at most.
func (t *Transport) Await(ctx context.Context) {
	select {
	case <-t.found:
	case <-ctx.Done():
	case <-time.After(firstLink):
	}
}
