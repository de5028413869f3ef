package transport

import (
	"errors"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestMultipathLinks: the kernel may use only links whose bytes need not be counted or slowed down, and metered ones only if there are
// no others.
func TestMultipathLinks(t *testing.T) {
	cfg := config.Default()
	cfg.Link = map[string]config.Link{"slowed": {MaxRate: 1e6}}
	tr := &Transport{}
	tr.live.Store(&cfg)
	m := &multipath{t: tr}
	if _, err := m.connect(t.Context(), "proxy.example:443"); !errors.Is(err, errUncounted) {
		t.Error(err)
	}
	m.SetLinks([]link.Link{{Name: "slowed"}, {Name: "metered", Metered: true}, {Name: "office", Via: "socks5://127.0.0.1:1080"}, {Name: "wifi"}, {Name: "eth"}})
	var names []string
	for _, l := range *m.links.Load() {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, []string{"wifi", "eth"}) {
		t.Error(names)
	}
}
