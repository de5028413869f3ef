package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/control"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// with returns a Load that gives the rig's settings with changes.
func (r *rig) with(change func(*config.Config)) daemon.Reloads {
	return daemon.Reloads{Load: func() (config.Config, error) {
		cfg := r.d.Settings()
		change(&cfg)
		return cfg, nil
	}}
}

// TestReloadTakesALinkAway disables a link while a download uses it. The link leaves the download, whose bytes stay correct, and
// carries nothing until it is enabled again.
func TestReloadTakesALinkAway(t *testing.T) {
	s := New(t, Object{Size: 3 * long}, RateLimit(slow))
	r := newRig(t, s, settings(), "wifi", "lte")
	d := r.open(nil)
	d.read(1 << 20)
	until(t, "lte carries bytes", limit, func() bool { return r.carried("lte") > 0 })
	no := false
	if err := r.d.Reload(r.with(func(c *config.Config) { c.Link = map[string]config.Link{"lte": {Enabled: &no}} })); err != nil {
		t.Fatal(err)
	}
	until(t, "lte is down", limit, func() bool { return r.state("lte") == "down" || r.state("lte") == "" })
	before := r.carried("lte")
	d.read(1 << 20)
	const read = 128 << 10 // bytes that may have been read before the link was disabled but not counted yet
	if after := r.carried("lte"); after > before+read {
		t.Errorf("the disabled link carried %d bytes more", after-before)
	}
	if err := r.d.Reload(r.with(func(c *config.Config) { c.Link = nil })); err != nil {
		t.Fatal(err)
	}
	until(t, "lte carries bytes again", limit, func() bool { d.read(10_000); return r.carried("lte") > before })
	d.rest(s.Object())
}

// TestReloadIsAllOrNothing: a configuration that cannot be applied as a whole changes nothing.
func TestReloadIsAllOrNothing(t *testing.T) {
	s := New(t, Object{Size: mid})
	r := newRig(t, s, settings(), "wifi", "lte")
	no := false
	disable := func(c *config.Config) { c.Link = map[string]config.Link{"lte": {Enabled: &no}} }
	for _, c := range []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"budget", func(c *config.Config) { disable(c); c.Budget = 1 << 20 }, "budget needs a restart"},
		{"two keys", func(c *config.Config) { disable(c); c.Listen = "127.0.0.1:1"; c.Scheduler = "single" }, "listen, scheduler needs a restart"},
	} {
		if err := r.d.Reload(r.with(c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := r.d.Reload(daemon.Reloads{Load: func() (config.Config, error) { return config.Config{}, errors.New("line 3") }}); err == nil {
		t.Error("a file with a fault is taken on")
	}
	whole(t, r.get(nil), s.Object())
	if r.state("lte") != "up" {
		t.Errorf("lte is %s", r.state("lte"))
	}
	level := new(slog.LevelVar)
	reloads := r.with(func(c *config.Config) { c.LogLevel = "debug" })
	reloads.Level = level
	if err := r.d.Reload(reloads); err != nil || level.Level() != slog.LevelDebug {
		t.Errorf("level %v, %v", level, err)
	}
}

// TestStatusOfRunningTransfer requests the status from the control socket while a download runs.
func TestStatusOfRunningTransfer(t *testing.T) {
	s := New(t, Object{Size: long}, RateLimit(slow))
	cfg := settings()
	cfg.Control = filepath.Join(t.TempDir(), "control", "s")
	r := newRig(t, s, cfg, "wifi", "lte")
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", cfg.Control)
	}}
	defer tr.CloseIdleConnections()
	ask := func() (st control.Status) {
		resp, err := (&http.Client{Transport: tr}).Get("http://control" + control.StatusPath)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err == nil {
			err = json.Unmarshal(said, &st)
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", resp.Status, err)
		}
		for _, secret := range []string{"http://", "object", "127.0.0.1:" + r.url.Port() + "/"} {
			if strings.Contains(string(said), secret) {
				t.Errorf("the status tells %q: %s", secret, said)
			}
		}
		return st
	}
	d := r.open(nil)
	d.read(2 << 20)
	until(t, "both links are told, and what was read", limit, func() bool { // the state is shown a little later
		d.read(1000)
		st := ask()
		return len(st.Transfers) == 1 && len(st.Transfers[0].Links) == 2 && len(st.Links) == 2 && st.Transfers[0].Offset >= 1<<20
	})
	st := ask()
	x := st.Transfers[0]
	sum := int64(0)
	for _, l := range x.Links {
		sum += l.Bytes
	}
	if x.Size != long || sum < x.Offset || x.Seconds <= 0 || st.Budget.Granted == 0 || st.Listen != r.url.Host {
		t.Errorf("%+v", st)
	}
	d.rest(s.Object())
	until(t, "the end is told", limit, func() bool { st := ask(); return len(st.Transfers) == 0 && st.Ended == 1 })
}
