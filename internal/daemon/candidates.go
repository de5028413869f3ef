package daemon

import (
	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/link"
)

// Candidates returns every interface with the decision that a daemon with this configuration takes on it now, and whom it
// asks for names.
func Candidates(cfg config.Config) ([]link.Candidate, *link.Resolver, error) {
	all, err := (&link.Netlink{Options: options(cfg)}).List()
	return all, &link.Resolver{Binder: link.Device{}, AllLinksAllowed: len(cfg.Links) == 0 && !anyDisabled(cfg)}, err
}
