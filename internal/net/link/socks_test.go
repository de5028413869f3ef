package link

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link/sockstest"
)

// office returns the Path of a link through the proxy, as if /etc/hosts were empty.
func office(s *sockstest.Server) *Upstream {
	return &Upstream{
		Scheme: KindSOCKS5,
		Link:   Link{Name: "office", Via: "socks5://" + s.Addr(), Metric: Unranked}, Addr: s.Addr(), Binder: &recorder{},
		hosts: func(context.Context, string) []netip.Addr { return nil },
	}
}

// read returns the next n bytes.
func read(c net.Conn, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}

func TestSOCKS5(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server sockstest.Options
		addr   string
		asked  string
		origin string // "" = not known
	}{
		{"a name is resolved by the proxy", sockstest.Options{}, "o.test:443", "name o.test:443", ""},
		{"spelled as it came", sockstest.Options{}, "O.test.:80", "name O.test.:80", ""},
		{"an IPv4 address", sockstest.Options{}, "192.0.2.1:80", "ipv4 192.0.2.1:80", "192.0.2.1:80"},
		{"an IPv6 address", sockstest.Options{}, "[2001:db8::1]:8080", "ipv6 [2001:db8::1]:8080", "[2001:db8::1]:8080"},
		{"an IPv4 address in IPv6's form", sockstest.Options{}, "[::ffff:192.0.2.1]:80", "ipv4 192.0.2.1:80", "192.0.2.1:80"},
		{"user and password", sockstest.Options{User: "me", Password: "pa:ss"}, "o.test:80", "name o.test:80", ""},
		{"bound to an IPv6 address", sockstest.Options{Bound: append([]byte{4}, make([]byte, 16)...)}, "o.test:80", "name o.test:80", ""},
		{"bound to a name", sockstest.Options{Bound: []byte("\x03\x05proxy")}, "o.test:80", "name o.test:80", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sockstest.New(t, tt.server)
			p := office(s)
			p.User, p.Password = tt.server.User, tt.server.Password
			b := p.Binder.(*recorder)
			c, info, err := p.Dial(t.Context(), "tcp", tt.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, ok := c.(*net.TCPConn); !ok {
				t.Errorf("connection is a %T: it cannot be spliced", c)
			}
			var origin netip.AddrPort
			if tt.origin != "" {
				origin = netip.MustParseAddrPort(tt.origin)
			}
			if want := (Info{Origin: origin}); info != want {
				t.Errorf("%+v, want %+v: the round trip to the proxy is not that to the origin", info, want)
			}
			if got := s.Requests(); !slices.Equal(got, []string{tt.asked}) {
				t.Errorf("asked for %q", got)
			}
			if got := b.called(); len(got) != 1 || !strings.HasPrefix(got[0], " tcp4 ") {
				t.Errorf("sockets %q: the one to the proxy belongs to no link", got)
			}
			// Every byte after the reply is from the origin, and no deadline is left.
			if _, err := c.Write([]byte("world")); err != nil {
				t.Fatal(err)
			}
			if got, err := read(c, len("hello world")); err != nil || string(got) != "hello world" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestSOCKS5Refusals: the reply determines who is to blame.
func TestSOCKS5Refusals(t *testing.T) {
	originSays := []error{syscall.ECONNREFUSED, ErrUpstreamRefused, syscall.ENETUNREACH, syscall.EHOSTUNREACH, ErrDenied}
	for _, tt := range []struct {
		name     string
		server   sockstest.Options
		user     string
		is       error // nil = the proxy is at fault
		contains string
	}{
		{"general failure", sockstest.Options{Reply: 1}, "", nil, "general SOCKS server failure"},
		{"not allowed", sockstest.Options{Reply: 2}, "", ErrUpstreamRefused, ""},
		{"network unreachable", sockstest.Options{Reply: 3}, "", syscall.ENETUNREACH, ""},
		{"host unreachable", sockstest.Options{Reply: 4}, "", syscall.EHOSTUNREACH, ""},
		{"connection refused", sockstest.Options{Reply: 5}, "", syscall.ECONNREFUSED, ""},
		{"connection refused, with a password", sockstest.Options{Reply: 5, User: "me"}, "me", syscall.ECONNREFUSED, ""},
		{"TTL expired", sockstest.Options{Reply: 6}, "", nil, "TTL expired"},
		{"no CONNECT", sockstest.Options{Reply: 7}, "", ErrUpstreamRefused, ""},
		{"address type not supported", sockstest.Options{Reply: 8}, "", ErrUpstreamRefused, ""},
		{"it wants a password", sockstest.Options{User: "me"}, "", nil, `via = "socks5://USER:PASSWORD@`},
		{"it wants another user", sockstest.Options{User: "me"}, "you", nil, "rejects the user and password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sockstest.New(t, tt.server)
			p := office(s)
			p.User = tt.user
			c, _, err := p.Dial(t.Context(), "tcp", "o.test:80")
			de, ok := errors.AsType[*DialError](err)
			if c != nil || !ok || de.Link != "office" || de.Op != OpConnect || !strings.Contains(err.Error(), s.Addr()) || !strings.Contains(err.Error(), tt.contains) {
				t.Fatalf("%v, %v", c, err)
			}
			for _, e := range originSays {
				if errors.Is(err, e) != (e == tt.is) {
					t.Errorf("%v: is %v", err, e)
				}
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		s := sockstest.New(t, sockstest.Options{})
		p := office(s)
		if err := p.Probe(t.Context()); err != nil {
			t.Errorf("it accepts connections: %v", err)
		}
		s.Close()
		_, _, err := p.Dial(t.Context(), "tcp", "o.test:80")
		for _, err := range []error{err, p.Probe(t.Context())} {
			if de, ok := errors.AsType[*DialError](err); !ok || de.Op != OpConnect || errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("that the proxy refuses a connection says nothing of an origin: %v", err)
			}
		}
	})
	t.Run("it says nothing", func(t *testing.T) {
		p := office(sockstest.New(t, sockstest.Options{Silent: true}))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, _, err := p.Dial(ctx, "tcp", "o.test:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("its socket cannot be made", func(t *testing.T) {
		p := office(sockstest.New(t, sockstest.Options{}))
		p.Binder = &recorder{err: syscall.EPERM}
		_, _, err := p.Dial(t.Context(), "tcp", "o.test:80")
		if bind, ok := errors.AsType[*BindError](err); !ok || bind.Link != "office" || !errors.Is(err, syscall.EPERM) {
			t.Error(err)
		}
	})
}

// TestSOCKS5Destinations: the rules for destinations apply here, as far as they can.
func TestSOCKS5Destinations(t *testing.T) {
	s := sockstest.New(t, sockstest.Options{})
	d := &Destinations{Own: func(to netip.AddrPort) bool { return to == netip.MustParseAddrPort("192.0.2.80:8080") }}
	hosts := map[string][]netip.Addr{
		"pinned.test":        ips("192.0.2.7"),
		"blocked.test":       ips("0.0.0.0"),
		"this.test":          ips("127.0.1.1"),
		"either.test":        ips("127.0.0.1", "192.0.2.8"),
		"me.test":            ips("192.0.2.80"),
		"rebind.example.com": ips("10.1.2.3"),
		"nas.lan":            ips("10.1.2.3"),
		"beside.lan":         ips("10.2.0.9"),
	}
	p := office(s)
	p.Check = d.Check
	p.hosts = func(_ context.Context, name string) []netip.Addr { return hosts[name] }
	wifi := Link{Name: "wlan0", Index: 3, Addrs: ips("10.2.0.1"), Prefixes: prefixes("10.2.0.0/24")}
	d.SetLinks([]Link{wifi, p.Link})
	dial := func(t *testing.T, addr string) (asked string, err error) {
		t.Helper()
		before := len(s.Requests())
		c, _, err := p.Dial(t.Context(), "tcp", addr)
		all := s.Requests()[before:]
		switch {
		case err == nil:
			c.Close()
			if len(all) != 1 {
				t.Fatalf("asked for %q", all)
			}
			return all[0], nil
		case len(all) > 0:
			t.Errorf("%s: asked for %q", addr, all)
		}
		if de, ok := errors.AsType[*DialError](err); !ok || (de.Op == OpRefuse) != (errors.Is(err, ErrDenied) || errors.Is(err, ErrOffLink)) {
			t.Errorf("%s: %v", addr, err)
		}
		return "", err
	}
	for addr, want := range map[string]string{
		"o.test:80": "name o.test:80", "10.1.2.3:80": "ipv4 10.1.2.3:80", "nas.lan:80": "ipv4 10.1.2.3:80", "intranet:80": "name intranet:80",
		"pinned.test:80": "ipv4 192.0.2.7:80", "Pinned.Test.:80": "ipv4 192.0.2.7:80", "either.test:80": "ipv4 192.0.2.8:80",
		"me.test:80": "ipv4 192.0.2.80:80", "7.test:80": "name 7.test:80", "0xface.test:80": "name 0xface.test:80", "xn--80ak6aa92e.test:80": "name xn--80ak6aa92e.test:80",
	} {
		if asked, err := dial(t, addr); err != nil || asked != want {
			t.Errorf("%s: asked for %q, %v; want %q", addr, asked, err, want)
		}
	}
	denied := map[string]error{
		"127.0.0.1:80": ErrDenied, "[::1]:80": ErrDenied, "[::ffff:127.0.0.1]:80": ErrDenied, "169.254.169.254:80": ErrDenied, "[fe80::1%wlan0]:80": ErrDenied,
		"[64:ff9b::7f00:1]:80": ErrDenied, "0.0.0.0:80": ErrDenied, "192.0.2.80:8080": ErrDenied,
		"localhost:80": ErrDenied, "LOCALHOST.:80": ErrDenied, "a.localhost:80": ErrDenied, "ip6-localhost:80": ErrDenied, "localhost.localdomain:80": ErrDenied,
		"metadata.google.internal:80": ErrDenied, "metadata:80": ErrDenied, "instance-data.ec2.internal:80": ErrDenied,
		"127.1:80": ErrDenied, "2130706433:80": ErrDenied, "0x7f000001:80": ErrDenied, "0x7F.1:80": ErrDenied, "127.0.0.0x1:80": ErrDenied, "0177.0.0.01.:80": ErrDenied, "0x:80": ErrDenied,
		"blocked.test:80": ErrDenied, "this.test:80": ErrDenied, "me.test:8080": ErrDenied, "rebind.example.com:80": ErrRebound,
		"10.2.0.9:80": ErrOffLink, "beside.lan:80": ErrOffLink,
	}
	for addr, want := range denied {
		rule := "R183"
		if want == ErrOffLink {
			rule = "R184"
		}
		t.Run(rule+" "+addr, func(t *testing.T) {
			if _, err := dial(t, addr); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
	t.Run("R183 exceptions", func(t *testing.T) {
		d.Allow = prefixes("127.0.0.0/8", "::1/128", "169.254.0.0/16")
		defer func() { d.Allow = nil }()
		for _, addr := range []string{"127.0.0.1:80", "localhost:80", "this.test:80"} { // reached, but not through another machine
			if _, err := dial(t, addr); !errors.Is(err, ErrOffLink) {
				t.Errorf("%s: %v", addr, err)
			}
		}
		if asked, err := dial(t, "metadata.google.internal:80"); err != nil || asked != "ipv4 169.254.169.254:80" {
			t.Errorf("asked for %q, %v", asked, err)
		}
	})
	t.Run("R184 R198 kept connections", func(t *testing.T) {
		l := p.Link
		l.Path = p
		const addr = "10.64.0.9:80"
		if err := l.Revalidate(addr, nil); err != nil {
			t.Errorf("nothing has changed: %v", err)
		}
		vpn := Link{Name: "tun0", Index: 9, Prefixes: prefixes("10.64.0.0/16")}
		d.SetLinks([]Link{wifi, p.Link, vpn})
		defer d.SetLinks([]Link{wifi, p.Link})
		if err := l.Revalidate(addr, nil); !errors.Is(err, ErrOffLink) {
			t.Errorf("the address belongs to another link now: %v", err)
		}
		if err := l.Revalidate("o.test:80", nil); err != nil {
			t.Errorf("only the proxy knows where a name leads: %v", err)
		}
	})
	t.Run("R183 deny_private", func(t *testing.T) {
		d.DenyPrivate = true
		defer func() { d.DenyPrivate = false }()
		for _, addr := range []string{"10.1.2.3:80", "nas.lan:80"} {
			if _, err := dial(t, addr); !errors.Is(err, ErrDenied) {
				t.Errorf("%s: %v", addr, err)
			}
		}
	})
	for _, addr := range []string{"o.test", "o.test:http", "o.test:65536", ":80", strings.Repeat("a.", 128) + "test:80"} {
		if _, err := dial(t, addr); err == nil {
			t.Errorf("%s was asked for", addr)
		}
	}
}

// TestInHosts reads the file of this machine.
func TestInHosts(t *testing.T) {
	b, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Skip(err)
	}
	tried := false
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		w := strings.Fields(line)
		if len(w) < 2 {
			continue
		}
		a, err := netip.ParseAddr(w[0])
		if err != nil || a.Zone() != "" {
			continue
		}
		tried = true
		if got := inHosts(t.Context(), strings.ToLower(w[1])); !slices.Contains(got, a) {
			t.Errorf("%s leads to %v, not %v", w[1], got, a)
		}
	}
	if !tried {
		t.Skip("the file has no names")
	}
	if got := inHosts(t.Context(), "not-in-the-file.test"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
