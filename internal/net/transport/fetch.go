package transport

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// How long Await waits for a link. A person who forgot the cable should not wait for long, but a machine or container
// that has just started should work: Linux reports a carrier up to 1 s late, and checks an IPv6 address for duplicates
// for up to 2 s (RFC 4862 section 5.4).
const (
	firstLink  = time.Second
	comingLink = 4 * time.Second // if the kernel is about to make one usable
)

// Everywhere contains every address. The user of a command may connect to any address; a proxy denies addresses to
// others (R183). The rule that a private network belongs to one link (R184) applies anyway.
var Everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// Own returns a Transport over the links of this machine for the program's own requests. Certificates of https origins
// are verified against roots, nil = the system's.
func Own(cfg config.Config, roots *x509.CertPool, log *slog.Logger) (*Transport, error) {
	return New(Config{
		Settings: cfg,
		Log:      log,
		Source:   &discover.Netlink{Options: LinkOptions(cfg)},
		Binder:   link.Device{},
		Roots:    roots,
		Allow:    Everywhere,
		History:  HistoryFile(cfg),
	})
}

// Await waits until there is a link, for a second, or a few while the kernel brings one up.
func (t *Transport) Await(ctx context.Context) {
	if t.awaited(ctx, firstLink) {
		return
	}
	kernel, ok := t.device.(interface {
		List() ([]discover.Candidate, error)
	})
	if !ok {
		return
	}
	all, err := kernel.List()
	if err == nil && slices.ContainsFunc(all, func(c discover.Candidate) bool {
		return c.Soon || c.Use && !t.data.knows(c.Link.Name) // it has come, and is about to be reported
	}) {
		t.awaited(ctx, comingLink-firstLink)
	}
}

// awaited waits for a link, for d at most. It returns false when that time is over.
func (t *Transport) awaited(ctx context.Context, d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-t.found:
	case <-ctx.Done():
	case <-limit.C:
		return false
	}
	return true
}
