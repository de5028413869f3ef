package transport

import (
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/origin/origintest"
	"github.com/tributary-http/tributary/internal/relay"
)

// TestRelays: private destinations, mail and the hosts that the user or the program leaves out do not go through the relay, nor does
// anything without one.
func TestRelays(t *testing.T) {
	tr := &Transport{relay: new(relay.Client)}
	cfg := config.Default()
	cfg.Relay.Except = []string{"shop.example", "203.0.113.7"}
	tr.live.Store(&cfg)
	for addr, want := range map[string]bool{
		"example.com:443": true, "workshop.example:443": true, "93.184.215.14:22": true,
		"example.com:25": false, "10.1.2.3:443": false, "[::1]:443": false, "169.254.169.254:80": false, "printer:443": false, "nas.local:443": false,
		"shop.example:443": false, "a.Shop.example.:443": false, "203.0.113.7:443": false, "www.netflix.com:443": false, "no port": false,
	} {
		if got := tr.relays(t.Context(), addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	tr.relay = nil
	if tr.relays(t.Context(), "example.com:443") {
		t.Error("without a relay")
	}
}

// TestRelayAway: a tunnel goes over a link when the relay has no lane, and fails as without a relay when that fails, too.
func TestRelayAway(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	tr := newTransport(t, s, "a")
	tr.relay = new(relay.Client)
	c, name, err := tr.raceRelay(t.Context(), "origin.test:443")
	if err != nil || name != "a" {
		t.Fatalf("over %q: %v", name, err)
	}
	c.Close()
	s.Close()
	_, _, direct := tr.dialDirect(t.Context(), "origin.test:443")
	if _, _, err := tr.raceRelay(t.Context(), "origin.test:443"); err == nil || direct == nil || err.Error() != direct.Error() {
		t.Errorf("%v, directly %v", err, direct)
	}
}
