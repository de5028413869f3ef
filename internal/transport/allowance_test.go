package transport

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/allowance"
	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/link"
)

// TestDialerNearTheLimit: connections are counted on their link's account, and get small buffers before they connect.
func TestDialerNearTheLimit(t *testing.T) {
	o, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: link.NewStatic(), Binder: link.Device{}})
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	o.monthAccounts = allowance.Open(filepath.Join(t.TempDir(), "allowance.json"), time.Now, o.log, func() { changed <- struct{}{} })
	defer o.monthAccounts.Close()
	o.monthAccounts.Set(map[string]allowance.Limit{"cellular": {Month: 4_000_000}})
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
	for _, l := range []link.Link{{Name: "cellular"}, {Name: "rmnet0", Account: "cellular"}} {
		if n := d.Buffer(l); n == 0 {
			t.Errorf("%+v: the kernel sizes the buffer", l)
		}
		if o.bounded(c, l) == c {
			t.Errorf("%+v: a connection is not counted", l)
		}
	}
	if l := (link.Link{Name: "wlan0"}); d.Buffer(l) != 0 || o.bounded(c, l) != c {
		t.Error("a link without a limit is bounded")
	}
}
