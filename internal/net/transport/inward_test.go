package transport

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// TestInward: where a name leads decides, not the name. A name that a redirect from the internet leads to is kept out of this
// machine and its networks, although the user may go there.
func TestInward(t *testing.T) {
	tr, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(), Binder: link.Device{}, Allow: Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	l := link.Link{Name: "w0", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.7")}}
	check := func(name, addr string) error {
		_, err := tr.check(l, name, netip.AddrPortFrom(netip.MustParseAddr(addr), 443))
		return err
	}
	for _, addr := range []string{"10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fe80::1", "fd00::1", "100.64.1.1", "64:ff9b::a00:1"} {
		t.Run("R240 "+addr, func(t *testing.T) {
			name := addr + ".example"
			if err := check(name, "203.0.113.1"); err != nil || tr.Inward(name) {
				t.Errorf("on the internet: %v", err)
			}
			if err := check(name, addr); err != nil || !tr.Inward(name) {
				t.Errorf("the user's own name: %v", err)
			}
			release, other := tr.KeepOut("Cdn."+name+"."), tr.KeepOut("cdn."+name)
			other() // a download that ends does not end the rule of another
			if err := check("cdn."+name, addr); !errors.Is(err, link.ErrRebound) || tr.Inward("cdn."+name) {
				t.Errorf("a name from a redirect: %v", err)
			}
			if err := check("cdn."+name, "203.0.113.1"); err != nil {
				t.Errorf("a name from a redirect, on the internet: %v", err)
			}
			release()
			if err := check("cdn."+name, addr); err != nil {
				t.Errorf("the user named it later: %v", err)
			}
		})
	}
}
