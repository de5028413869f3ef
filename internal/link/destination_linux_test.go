package link

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
)

// TestDestinationsInside dials through a filter in a network namespace: what the kernel says of networks decides.
func TestDestinationsInside(t *testing.T) {
	if !inside(t) {
		return
	}
	f := twoLinks(t)
	f.greeter(t, "10.2.0.2:80") // the far end of b
	ls := current(t, nil, "a0", "b0")
	d := &Destinations{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	d.SetLinks(ls)
	dialer := &Dialer{Binder: Device{}, Resolver: &Resolver{Binder: Device{}}, Allow: d.Check}
	dial := func(l Link, addr string) (from string, err error) {
		t.Helper()
		c, err := dialer.DialContext(t.Context(), l, "tcp", addr)
		if err != nil {
			return "", err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		return string(b), err
	}
	t.Run("R184 a private address on b is reached over b", func(t *testing.T) {
		if from, err := dial(ls[1], "10.2.0.2:80"); from != "10.2.0.1" || err != nil {
			t.Errorf("came from %q, %v", from, err)
		}
	})
	t.Run("R184 and not over a, though a router there would know the way", func(t *testing.T) {
		before := sent(t, "a0")
		if from, err := dial(ls[0], "10.2.0.2:80"); !errors.Is(err, ErrOffLink) {
			t.Errorf("came from %q, %v", from, err)
		}
		if n := sent(t, "a0"); n != before {
			t.Errorf("%d packets over a", n-before)
		}
	})
	t.Run("R199 R183 loopback, as an exception, is reached over the loopback device", func(t *testing.T) {
		up(t, "lo")
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer ln.Close()
		before := sent(t, "a0")
		c, err := dialer.DialContext(t.Context(), ls[0], "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if n := sent(t, "a0"); n != before {
			t.Errorf("%d packets over a", n-before)
		}
	})
}
