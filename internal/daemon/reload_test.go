package daemon

import (
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// TestFixedKeys: every key of the configuration is either live or reported when it changes.
func TestFixedKeys(t *testing.T) {
	a, b := config.Default(), config.Config{}
	keys := fixed(a, b)
	for _, k := range live {
		if slices.Contains(keys, k) {
			t.Errorf("%s is live", k)
		}
	}
	if !slices.Contains(keys, "admin") || slices.Contains(keys, "") {
		t.Errorf("keys %q", keys)
	}
}

// TestNotify receives the notifications in place of systemd.
func TestNotify(t *testing.T) {
	path := t.TempDir() + "/notify"
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	_, _, stop, err := StartWith(t.Context(), proxyAlone(), slog.New(slog.DiscardHandler), transport.Config{Source: discover.NewStatic()})
	if err != nil {
		t.Fatal(err)
	}
	heard := func() string {
		b := make([]byte, 200)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := heard(); got != "READY=1" {
		t.Errorf("told %q", got)
	}
	notify(reloading())
	if got := heard(); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("reload %q", got)
	}
	stop()
	if got := heard(); got != "STOPPING=1" {
		t.Errorf("told %q", got)
	}
}
