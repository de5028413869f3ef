package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestMeasure: each link is measured over a lane of its own, and a link that does not reach the relay reports why.
func TestMeasure(t *testing.T) {
	r := newRig(t)
	if err := Enrol(t.Context(), r.client, r.invite()); err != nil {
		t.Fatal(err)
	}
	dialed := map[string]int{}
	dial := link.DialFunc(func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		if l.Name == "down" {
			return nil, errors.New("no route")
		}
		r.mu.Lock()
		dialed[l.Name]++
		r.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	})
	links := dial.Over(link.Link{Name: "down"}, link.Link{Name: "lte"}, link.Link{Name: "wifi"}, link.Link{Name: "sim", Terms: policy.Terms{Metered: true}})
	gains, all, err := Measure(t.Context(), r.client, r.address, links, 64<<20, slog.New(slog.DiscardHandler))
	if err != nil || len(gains) != 3 {
		t.Fatalf("%+v, %v", gains, err)
	}
	sum := 0.0
	for _, g := range gains {
		if (g.Failure != nil) != (g.Link == "down") || g.Failure == nil && g.Alone <= 0 {
			t.Errorf("%+v", g)
		}
		sum += g.Adds
	}
	if all <= 0 || sum < 0.99*all || sum > 1.01*all {
		t.Errorf("together %.0f, the gains are %.0f", all, sum)
	}
	key, err := OwnKey(r.client, r.address)
	if err != nil {
		t.Fatal(err)
	}
	if used, err := Used(r.server, key, time.Now()); err != nil || used == 0 {
		t.Errorf("what was measured is not counted: %d, %v", used, err)
	}
	if dialed["wifi"] == 0 || dialed["lte"] == 0 || dialed["sim"] > 0 {
		t.Errorf("dialed %v", dialed)
	}
}

func TestForget(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tributary")
	path := filepath.Join(dir, "relay.json")
	r := newRig(t)
	r.client = path
	if err := Enrol(t.Context(), path, r.invite()); err != nil {
		t.Fatal(err)
	}
	if err := SetInstalled(path, r.address, "root@host"); err != nil {
		t.Fatal(err)
	}
	if SetInstalled(path, "other:1", "root@host") == nil {
		t.Error("a relay that was never paired")
	}
	if got, err := Installed(path, "root@host"); err != nil || len(got) != 1 || got[0] != r.address {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Installed(path, "root@other"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	key, err := OwnKey(path, r.address)
	if known, _ := Clients(r.server); err != nil || known[key].IsZero() {
		t.Errorf("%s is not the key that the server knows: %v", key, err)
	}
	if err := Forget(path, r.address); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := Forget(path, r.address); err != nil {
		t.Error("once more:", err)
	}
}
