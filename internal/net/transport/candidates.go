package transport

import (
	"log/slog"
	"slices"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// Candidates returns every interface, and every link through an upstream proxy, with the decision that a Transport with
// this configuration makes about it now, and the Resolver that it would use.
func Candidates(cfg config.Config) ([]discover.Candidate, *link.Resolver, error) {
	t, err := Own(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	all, err := t.device.(*discover.Netlink).List()
	all = append(all, t.upstreamCandidates(cfg)...)
	slices.SortStableFunc(all, func(a, b discover.Candidate) int { // used links come first
		switch {
		case a.Use == b.Use:
			return 0
		case a.Use:
			return -1
		}
		return 1
	})
	var used []link.Link
	for _, c := range all {
		if c.Use {
			used = append(used, c.Link)
		}
	}
	t.reach.SetLinks(used)
	return all, t.dials.Load().Resolver, err
}
