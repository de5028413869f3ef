package relay

import (
	"context"
	"log/slog"
	"net"

	"github.com/tributary-http/tributary/internal/net/link"
)

// End carries connections over all links: a Client of one relay, the Nearest of several, or the Pairings.
type End interface {
	Dial(ctx context.Context, addr string) (net.Conn, error)
	// SetLinks sets the current links.
	SetLinks(all []link.Link)
	// Run does the remaining work until ctx ends.
	Run(ctx context.Context)
	Status() Status
}

// Open returns the End for paired relays at these addresses, which must not be none. budget is the memory that it may
// hold, in bytes.
func Open(path string, addresses []string, budget int64, log *slog.Logger) (End, error) {
	if len(addresses) > 1 {
		nearest, err := NewNearest(path, addresses, budget, log)
		if err != nil {
			return nil, err
		}
		return nearest, nil
	}
	client, err := NewClient(path, addresses[0], budget, log)
	if err != nil {
		return nil, err
	}
	return client, nil
}
