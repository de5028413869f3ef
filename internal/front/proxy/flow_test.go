package proxy_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// TestFlows: the transport learns the user of a tunnel or a request, as far as that is known.
func TestFlows(t *testing.T) {
	alice := func(c *proxy.Config) {
		c.Owner = func(_, _ netip.AddrPort) (uint32, error) { return 1000, nil }
		c.Users = []uint32{1000}
	}
	want := func(t *testing.T, got, want transport.Flow) {
		t.Helper()
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	t.Run("CONNECT", func(t *testing.T) {
		o := serve(t, echo)
		g := start(t, alice)
		g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: " + o.addr + "\r\nUser-Agent: aria2/1.36.0\r\n\r\n").wantHead("200")
		want(t, <-g.f.flows, transport.Flow{User: "1000", Program: "aria2/1.36.0"})
	})
	t.Run("CONNECT of nobody known", func(t *testing.T) {
		o := serve(t, echo)
		g := start(t)
		g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: " + o.addr + "\r\n\r\n").wantHead("200")
		want(t, <-g.f.flows, transport.Flow{})
	})
	t.Run("a request", func(t *testing.T) {
		o, _ := answer(t, small)
		g := start(t, alice)
		g.send("PUT " + o.url("/a") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").wantHead("200")
		want(t, flowOf(g.f.last().Context()), transport.Flow{User: "1000", Host: "127.0.0.1"})
	})
	t.Run("a redirected request belongs to its host", func(t *testing.T) {
		o, _ := answer(t, small)
		g := redirected(t, o.addr, alice)
		g.send("GET /a HTTP/1.1\r\nHost: WWW.Example.com.:8000\r\n\r\n").wantHead("200")
		want(t, flowOf(g.f.last().Context()), transport.Flow{User: "1000", Host: "www.example.com"})
	})
	t.Run("an app that may not use metered links, asked once for a connection", func(t *testing.T) {
		o, _ := answer(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") // as the answer to a HEAD must end
		asked, metered := 0, false
		apps := func(c *proxy.Config) {
			c.App = func(_, _ netip.AddrPort) int64 { asked++; return 10200 }
			c.Meters = func(whose func() int64) bool { return whose() == 10200 && metered }
		}
		g := start(t, apps)
		c := g.dial()
		for _, m := range []bool{false, true} { // the user changes the choice while it is connected
			metered = m
			c.send("HEAD " + o.url("/a") + " HTTP/1.1\r\nHost: x\r\n\r\n")
			c.wantHead("200")
			want(t, flowOf(g.f.last().Context()), transport.Flow{Host: "127.0.0.1", Unmetered: !m})
		}
		if asked != 1 {
			t.Errorf("asked %d times whose a connection is", asked)
		}
		metered = false
		to := serve(t, echo)
		g.send("CONNECT " + to.addr + " HTTP/1.1\r\nHost: " + to.addr + "\r\n\r\n").wantHead("200")
		want(t, <-g.f.flows, transport.Flow{Unmetered: true})
		s, _ := socks(t, apps)
		at := netip.MustParseAddrPort(to.addr)
		sc := s.dial()
		sc.send("\x05\x01\x00" + socksRequest(1, at.Addr().String(), at.Port()))
		sc.want(chosen + socksOK)
		want(t, <-s.f.flows, transport.Flow{Unmetered: true})
	})
	named := func(c *proxy.Config) {
		alice(c)
		c.SpreadPrograms = []string{"steam"}
		c.Program = func(local, _ netip.AddrPort, names []string) string {
			if local.Addr().IsLoopback() && slices.Equal(names, c.SpreadPrograms) {
				return "/opt/steam"
			}
			return ""
		}
	}
	unnamed := func(c *proxy.Config) {
		named(c)
		c.SpreadPrograms = nil
	}
	for _, c := range []struct {
		name, want string
		option     func(*proxy.Config)
	}{{"unknown", "", alice}, {"that is named", "/opt/steam", named}, {"that nobody named", "", unnamed}} {
		t.Run("R163 a redirected TLS connection, program "+c.name, func(t *testing.T) {
			o := serve(t, func(c *conn) { _, _ = http.ReadRequest(c.br) })
			g := redirected(t, o.addr, c.option)
			nc, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if err := tls.Client(nc, &tls.Config{ServerName: "CDN.example.com"}).Handshake(); err == nil {
				t.Error("the origin speaks TLS")
			}
			if to := <-g.f.dialed; to != o.addr {
				t.Errorf("dialed %s, not where the program did", to)
			}
			want(t, <-g.f.flows, transport.Flow{User: "1000", Program: c.want, Host: "cdn.example.com", Redirected: true})
		})
	}
	t.Run("a tunnel that is opened, and a request in it", func(t *testing.T) {
		o := opens(t, nil, nil)
		connect := "CONNECT " + openedHost + ":443 HTTP/1.1\r\nHost: x\r\nUser-Agent: aria2/1.36.0\r\n\r\n"
		c := o.send(connect)
		c.wantHead("200")
		tc := tls.Client(c, o.trusting("http/1.1"))
		if _, err := io.WriteString(tc, "GET / HTTP/1.1\r\nHost: "+openedHost+"\r\nUser-Agent: within\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(tc); err != nil {
			t.Fatal(err)
		}
		want(t, <-o.f.flows, transport.Flow{Program: "aria2/1.36.0"})
		want(t, flowOf(o.f.last().Context()), transport.Flow{Host: openedHost})
		// The origin is known. A connection that then turns out not to be HTTP becomes a tunnel.
		c = o.send(connect)
		c.wantHead("200")
		if _, err := io.WriteString(c, "SSH-2.0-x\r\n"); err != nil {
			t.Fatal(err)
		}
		want(t, <-o.f.flows, transport.Flow{Program: "aria2/1.36.0"})
	})
}
