package proxy_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/proxy"
)

// socks is a rig whose address speaks SOCKS5.
func socks(t *testing.T, options ...func(*proxy.Config)) (*rig, *proxy.SOCKS) {
	t.Helper()
	g := start(t, options...)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	s := proxy.NewSOCKS(g.proxy)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		g.proxy.CloseLink("lo")
		_ = s.Shutdown(t.Context())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return g, s
}

const (
	noAuth = "\x05\x01\x00"
	chosen = "\x05\x00"
	// socksOK is a reply; its address is not used.
	socksOK = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
)

// socksRequest returns a request for a name or an IPv4 address.
func socksRequest(command byte, host string, port uint16) string {
	b := []byte{5, command, 0}
	if a, err := netip.ParseAddr(host); err == nil {
		b = append(append(b, 1), a.AsSlice()...)
	} else {
		b = append(append(b, 3, byte(len(host))), host...)
	}
	return string(append(b, byte(port>>8), byte(port)))
}

// refusedWith reads a reply with this code, and the end.
func (c *conn) refusedWith(code byte) {
	c.t.Helper()
	c.want(string([]byte{5, code}) + socksOK[2:])
	c.wantEnd()
}

func (c *conn) wantEnd() {
	c.t.Helper()
	if b, err := c.br.ReadByte(); err == nil {
		c.t.Fatalf("%#x after the end", b)
	}
}

// TestSOCKS makes tunnels by name and by address: bytes pass both ways, and so does the end of one direction.
func TestSOCKS(t *testing.T) {
	for _, byName := range []bool{true, false} {
		o := serve(t, func(c *conn) {
			c.send("SSH-2.0\r\n")
			all, _ := io.ReadAll(c.br)
			c.send("got " + string(all))
		})
		g, _ := socks(t)
		to := netip.MustParseAddrPort(o.addr)
		host := to.Addr().String()
		if byName {
			host = "localhost"
		}
		c := g.dial()
		c.send("\x05\x02\x02\x00") // user and password, or nothing
		c.want(chosen)
		c.send(socksRequest(1, host, to.Port()))
		c.want(socksOK + "SSH-2.0\r\n")
		c.send("hello")
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.want("got hello")
		c.wantEnd()
	}
}

func TestSOCKSRefuses(t *testing.T) {
	ask := func(g *rig, request string) *conn {
		c := g.dial()
		c.send(noAuth)
		c.want(chosen)
		c.send(request)
		return c
	}
	t.Run("destinations and commands", func(t *testing.T) {
		g, _ := socks(t)
		self := netip.MustParseAddrPort(g.dial().LocalAddr().String()) // any port of ours that nobody listens on
		for request, code := range map[string]byte{
			socksRequest(1, "192.0.2.1", 25):            2, // R139
			socksRequest(1, "mail.example", 587):        2,
			socksRequest(2, "192.0.2.1", 80):            7, // BIND
			socksRequest(3, "192.0.2.1", 80):            7, // UDP ASSOCIATE
			"\x05\x01\x00\x09":                          8,
			socksRequest(1, "a b.example", 80):          8,
			socksRequest(1, "x.example\r\nHost: y", 80): 8,
			socksRequest(1, "o.example", 0):             8,
			socksRequest(1, "", 80):                     8,
			socksRequest(1, "127.0.0.1", self.Port()):   5, // nobody listens
		} {
			ask(g, request).refusedWith(code)
		}
		if n := len(g.f.dialed); n != 1 {
			t.Errorf("%d dials", n)
		}
	})
	t.Run("R15 itself", func(t *testing.T) {
		var own netip.AddrPort
		g, _ := socks(t, func(c *proxy.Config) { c.Self = func(a netip.AddrPort) bool { return a == own } })
		own = netip.MustParseAddrPort(g.addr)
		ask(g, socksRequest(1, "127.0.0.1", own.Port())).refusedWith(2)
	})
	t.Run("R185 other users", func(t *testing.T) {
		g, _ := socks(t, func(c *proxy.Config) {
			c.Users = []uint32{1}
			c.Owner = func(_, _ netip.AddrPort) (uint32, error) { return 2, nil }
		})
		ask(g, socksRequest(1, "o.example", 443)).refusedWith(2)
	})
	t.Run("R185 a user that cannot be told", func(t *testing.T) {
		g, _ := socks(t, func(c *proxy.Config) {
			c.Users = []uint32{1}
			c.Owner = func(_, _ netip.AddrPort) (uint32, error) { return 0, admission.ErrUnknown }
		})
		ask(g, socksRequest(1, "o.example", 443)).refusedWith(2)
	})
	for _, tt := range []struct{ name, send, answer string }{
		{"a page's request", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", ""},
		{"SOCKS4", "\x04\x01\x00\x50\xc0\x00\x02\x01\x00", ""},
		{"a password is wanted", "\x05\x01\x02", "\x05\xff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := socks(t)
			c := g.dial()
			c.send(tt.send)
			c.want(tt.answer)
			c.wantEnd()
		})
	}
	t.Run("a silent client when the proxy ends", func(t *testing.T) {
		g, s := socks(t)
		c := g.dial()
		c.send(noAuth)
		c.want(chosen)
		_ = s.Shutdown(t.Context())
		c.wantEnd()
	})
}
