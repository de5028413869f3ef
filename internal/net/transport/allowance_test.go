package transport

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/allowance"
	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// TestDialerNearTheLimit: connections are charged to their link's account, and get small buffers before they connect.
func TestDialerNearTheLimit(t *testing.T) {
	o, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(), Binder: link.Device{}})
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	o.data.accounts = allowance.Open(filepath.Join(t.TempDir(), "allowance.json"), time.Now, o.log, func() { changed <- struct{}{} })
	defer o.data.accounts.Close()
	o.data.accounts.Set(map[string]allowance.Limit{"cellular": {Month: 4_000_000}})
	<-changed
	d := o.dials.Load()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, l := range []link.Link{{Name: "cellular"}, {Name: "rmnet0", Terms: policy.Terms{Account: "cellular"}}} {
		if n := d.Buffer(l); n == 0 {
			t.Errorf("%+v: the kernel sizes the buffer", l)
		}
		if over := conn.Of(c); o.bounded(over, l) != nil || over.TCP() != nil {
			t.Errorf("%+v: a connection is not counted", l)
		}
	}
	l := link.Link{Name: "wlan0"}
	if over := conn.Of(c); d.Buffer(l) != 0 || o.bounded(over, l) != nil || over.TCP() == nil {
		t.Error("a link without a limit is bounded")
	}
}

// TestPatternAccount: links that match one pattern are charged to one account, also after the pattern is reloaded.
func TestPatternAccount(t *testing.T) {
	o, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(), Binder: link.Device{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Link = map[string]config.Link{"*rmnet*": {Monthly: 4_000_000}, "rmnet7": {Monthly: 1_000_000}, "rmnet8": {Metered: new(bool)}}
	o.Reload(cfg)
	for name, want := range map[string]string{"rmnet0": "*rmnet*", "v4-rmnet_data1": "*rmnet*", "rmnet7": "rmnet7", "rmnet8": "*rmnet*", "wlan0": "wlan0"} {
		if got := account(o.live.Load(), link.Link{Name: name}); got != want {
			t.Errorf("%s is counted on %q, want %q", name, got, want)
		}
	}
	if got := account(o.live.Load(), link.Link{Name: "rmnet0", Terms: policy.Terms{Account: "cellular-1"}}); got != "cellular-1" {
		t.Errorf("an app's account is replaced by %q", got)
	}
	if got := o.data.limits(cfg); len(got) != 2 || got["*rmnet*"].Month != 4_000_000 || got["rmnet7"].Month != 1_000_000 {
		t.Errorf("limits %+v", got)
	}
}
