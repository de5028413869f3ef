package daemon

import (
	"log/slog"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/link"
)

// Candidates returns every interface with the decision that a daemon with this configuration takes on it now, and whom it
// asks for names.
func Candidates(cfg config.Config) ([]link.Candidate, *link.Resolver, error) {
	o := newFetch(cfg, slog.New(slog.DiscardHandler), &link.Netlink{Options: options(cfg)})
	all, err := o.source.(*link.Netlink).List()
	var used []link.Link
	for _, c := range all {
		if c.Use {
			used = append(used, c.Link)
		}
	}
	o.reach.SetLinks(used)
	return all, o.dialer(link.Device{}).Resolver, err
}
