package systemtest

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/front/control"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestGatewayControl: the gateway listens, and commands can ask for its address and record hosts.
func TestGatewayControl(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	s := New(t, Object{Size: mid})
	for _, with := range []bool{true, false} {
		cfg := settings()
		cfg.Control = filepath.Join(dir, "control", "s")
		if with {
			cfg.Gateway, cfg.GatewayHosts = "127.0.0.1:0", []string{"listed.example"}
		}
		r := newRig(t, s, cfg, "wifi")
		c := control.NewClient(cfg.Control)
		g, err := c.Gateway(t.Context(), "pip")
		if !with {
			if recordErr := c.RecordHosts(t.Context(), "pip", nil); !errors.Is(err, control.ErrNoGateway) || !errors.Is(recordErr, control.ErrNoGateway) {
				t.Errorf("there is none: %v, %v", err, recordErr)
			}
			c.Close()
			r.stop()
			continue
		}
		if err != nil || len(g.Hosts) > 0 {
			t.Fatalf("%+v, %v", g, err)
		}
		status := func(host string) int {
			t.Helper()
			resp, err := http.Get("http://" + g.Listen + "/https/" + host + "/x")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode
		}
		if listed, other := status("listed.example"), status("recorded.example"); listed == 403 || other != 403 {
			t.Errorf("listed: %d, other: %d", listed, other)
		}
		if err := c.RecordHosts(t.Context(), "pip", []string{"recorded.example"}); err != nil {
			t.Fatal(err)
		}
		if g, err := c.Gateway(t.Context(), "pip"); err != nil || !slices.Equal(g.Hosts, []string{"recorded.example"}) {
			t.Errorf("%+v, %v", g, err)
		}
		if status("recorded.example") == 403 {
			t.Error("a recorded host is refused")
		}
		if err := c.RecordHosts(t.Context(), "pip", []string{"no host"}); err == nil {
			t.Error("what is no host is recorded")
		}
		if !slices.Contains(r.d.Listeners(), netip.MustParseAddrPort(g.Listen)) {
			t.Error("the proxy leads to the gateway")
		}
		c.Close()
		r.stop()
	}
}
