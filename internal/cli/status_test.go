package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// proxyAt lets a proxy with the status s listen on a control socket at path.
func proxyAt(t *testing.T, path string, s control.Status) {
	t.Helper()
	l, err := control.Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s) })}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-done })
}

func status(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{version: "v9", rawStdout: &out, rawStderr: &errs, serve: noServe, proxy: noProxy, getenv: func(n string) string { return env[n] }}
	code = a.run(t.Context(), append([]string{"status"}, args...))
	return code, out.String(), errs.String()
}

func TestStatus(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := control.Status{
		Version: "v9", PID: 77, Listen: "127.0.0.1:8080", Started: at, At: at.Add(90 * time.Second), Tunnels: 3, Ended: 5, Passed: 7,
		Links: []engine.LinkStatus{
			{Name: "wlan0", State: "up", Goodput: 10e6, RTT: 0.012, Bytes: 1_500_000_000, Waste: 2000, Undivided: 8},
			{Name: "wwan0", State: "banned", Reason: "silent", Bans: 2},
			{
				Name: "usb0", State: "down", Reason: "it has reached its limit for this month",
				Used: &engine.Used{Month: 3_000_000, MonthLimit: 3_000_000, Today: 1_000_000, DayLimit: 2_000_000},
			},
		},
		Draining: true,
		Transfers: []engine.TransferStatus{{
			ID: 4, Size: 50_000_000, Offset: 20_000_000, Held: 1_000_000, Seconds: 2,
			Links:   []engine.LinkBytes{{Link: "wlan0", Bytes: 15_000_000}, {Link: "wwan0", Bytes: 5_000_000}},
			LeftOut: []engine.LeftOut{{Link: "wwan0", Text: health.TooSlow.Text()}, {Link: "usb0", Text: health.NoGain.Text()}},
			Limited: []engine.Limited{{Link: "wlan0", Each: 1_050_000, Conns: 6}, {Link: "wwan0", Each: 62_500, Conns: 1}},
		}},
		Finished: []control.Finished{
			{Result: "ok", At: time.Date(2026, 11, 27, 9, 0, 0, 0, time.Local), Seconds: 2.5, Bytes: 40e6, Links: []engine.LinkBytes{{Link: "wlan0", Bytes: 30e6}, {Link: "wwan0", Bytes: 10e6}}},
			{Result: "origin", At: time.Date(2026, 11, 27, 8, 0, 0, 0, time.Local), Links: []engine.LinkBytes{}},
		},
		Budget: engine.Memory{Total: 64 << 20, Granted: 16 << 20, Held: 1 << 20},
		Relay: &relay.Status{Address: "relay.example:443", Streams: 3, Failed: 2, Failure: "the relay does not find this name", Lanes: []relay.LaneStatus{
			{Link: "usb0", Failure: "connection refused"}, {Link: "wlan0", Up: true, RTT: 0.02, Bytes: 12e6}, {Link: "wwan0", Up: true, RTT: 0.045, Bytes: 7e6},
		}},
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "tributary", "control.sock")
	env := map[string]string{"XDG_RUNTIME_DIR": dir}
	if code, _, errs := status(t, env, "--control", path); code != 1 || !strings.Contains(errs, "tributary serve") {
		t.Errorf("nothing runs: code %d, %s", code, errs)
	}
	proxyAt(t, path, s)
	code, out, errs := status(t, env, "--once")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	for _, want := range []string{
		"tributary v9, process 77, on 127.0.0.1:8080, up 1m30s\ndraining: it finishes what runs and accepts nothing new\n",
		"usb0   down             -            -      0 B      0 B    0        0\n",
		"usb0 is down: it has reached its limit for this month\nusb0 has carried 3.0 MB of 3.0 MB this month\nusb0 has carried 1.0 MB of 2.0 MB today\n",
		"wlan0  up               80.0 Mbit/s  12 ms  1.50 GB  2 kB   8        0\n",
		"wwan0  banned (silent)  -            -      0 B      0 B    0        2\n",
		"4         20.0 MB  40%  50.0 MB  80.0 Mbit/s  1.0 MB  wlan0 75%, wwan0 25%\n",
		"download 4 does not use wwan0 at the moment: too slow: the other links would wait for it (slow = \"off\" uses it anyway)\n",
		"download 4 does not use usb0 at the moment: it does not add speed; it seems to share a channel or line with another link\n",
		"download 4 over wlan0: the server limits each connection to 8.4 Mbit/s: 6 connections\n",
		"download 4 over wwan0: the server limits each connection to 500 kbit/s: 1 connection\n",
		"relay relay.example:443: 3 tunnels over wlan0 20 ms (12.0 MB), wwan0 45 ms (7.0 MB)\nrelay relay.example:443: did not carry 2 tunnels, which used one link; the last one: the relay does not find this name\nrelay relay.example:443: no connection over usb0: connection refused\n",
		"09:00:00  40.0 MB    2.5 s  wlan0 75%, wwan0 25%  complete\n08:00:00  0 B        0.0 s  -                     server error\n",
		"5 downloads divided over the links, 7 requests over one link, 3 open tunnels",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	code, out, _ = status(t, env, "--json")
	if want := `"link": "wlan0", "connection_bytes_per_second": 1050000, "connections": 6`; !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("%q is missing in\n%s", want, out)
	}
	var got control.Status
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || got.Links[1].Bans != 2 {
		t.Errorf("code %d, %v:\n%s", code, err, out)
	}

	file := filepath.Join(dir, "c.toml")
	if err := os.WriteFile(file, []byte(`control = ""`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := status(t, env, "--config", file); code != 2 || !strings.Contains(errs, "disables the control socket") {
		t.Errorf("without a socket: code %d, %s", code, errs)
	}
}

// TestStatusElsewhere: a proxy in another network namespace, found by the path of its socket, is not this machine's. A user
// who names the socket wants it.
func TestStatusElsewhere(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": t.TempDir()}
	path := control.Path(func(n string) string { return env[n] }, os.Getuid(), os.TempDir())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	proxyAt(t, path, control.Status{Version: "v9", Namespace: "net:[1]"})
	if code, out, errs := status(t, env); code != 1 || !strings.Contains(errs, "is in another network namespace; --control "+path) {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	if code, out, errs := status(t, env, "--control", path); code != 0 {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}
