package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// TestRelays: private destinations, mail and the hosts that the user or the program leaves out do not go through the relay, nor does
// anything without one.
func TestRelays(t *testing.T) {
	tr := &Transport{relay: new(relay.Client)}
	cfg := config.Default()
	cfg.Relay.Except = []string{"shop.example", "203.0.113.7"}
	tr.live.Store(&cfg)
	for addr, want := range map[string]bool{
		"example.com:443": true, "workshop.example.com:443": true, "93.184.215.14:22": true,
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

// TestRelayAway: a tunnel goes over a link when the relay has no lane, and if the link fails too, it fails as it would without
// a relay.
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

// secondEndTo is a second end next to an origin.
type secondEndTo struct {
	*origintest.Server
	dialed atomic.Int32
}

func (s *secondEndTo) Dial(ctx context.Context, _ string) (net.Conn, error) {
	s.dialed.Add(1)
	return new(net.Dialer).DialContext(ctx, "tcp", s.Addr(0))
}
func (*secondEndTo) SetLinks([]link.Link) {}
func (*secondEndTo) Run(context.Context)  {}
func (s *secondEndTo) Status() relay.Status {
	return relay.Status{Streams: int(s.dialed.Load()), Lanes: []relay.LaneStatus{{Link: "a", Bytes: 1000 * int64(s.dialed.Load())}}}
}

// TestLanesAreCounted: what lanes carry is traffic of their links, while tunnels use them and afterwards.
func TestLanesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := new(secondEndTo)
		tr := &Transport{relay: end, placer: direct.NewPlacer(spread.Policy{})}
		tr.placer.Relay = tr.relayed
		for _, step := range []struct {
			tunnels int32 // 1,000 bytes for each
			want    spread.Load
		}{{0, spread.Load{}}, {3, spread.Load{Bytes: 3000, Rate: 3000}}, {5, spread.Load{Bytes: 5000, Rate: 2000}}, {5, spread.Load{Bytes: 5000}}} {
			time.Sleep(time.Second)
			end.dialed.Store(step.tunnels)
			if loads, _ := tr.placer.Loads(); loads["a"] != step.want {
				t.Errorf("%+v, want %+v", loads["a"], step.want)
			}
		}
	})
}

// TestRelayAll: undivided requests take the relay if the user wants that, divided ones do not, and without the relay a link
// carries them.
func TestRelayAll(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	tr := newTransport(t, s, "a", "b")
	end := &secondEndTo{Server: s}
	tr.relay, tr.passThrough.Detour = end, tr.detour
	send := func(method, mode string) *http.Response {
		cfg := *tr.live.Load()
		cfg.Relay.Mode = mode
		tr.live.Store(&cfg)
		r, err := http.NewRequestWithContext(t.Context(), method, "http://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		resp.Body.Close()
		return resp
	}
	for _, c := range []struct {
		method, mode string
		want         int32
	}{{http.MethodPut, config.RelayTunnels, 0}, {http.MethodGet, config.RelayAll, 0}, {http.MethodPut, config.RelayAll, 1}} {
		send(c.method, c.mode)
		if got := end.dialed.Load(); got != c.want {
			t.Errorf("%s, %s: dialed %d", c.method, c.mode, got)
		}
	}
	tr.relay = new(relay.Client) // without a lane
	tr.passThrough.Close()
	send(http.MethodPut, config.RelayAll)
}
