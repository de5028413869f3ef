package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/front/proxy"
)

// redirected is a rig whose connections all had one original destination; none if it is "".
func redirected(t *testing.T, to string, options ...func(*proxy.Config)) *rig {
	t.Helper()
	g := start(t, options...)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	s := proxy.NewTransparent(g.proxy, func(c *net.TCPConn) (netip.AddrPort, error) {
		if to == "" {
			return netip.AddrPort{}, syscall.ENOENT
		}
		return netip.MustParseAddrPort(to), nil
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = g.proxy.Shutdown(ctx)
		_ = s.Shutdown(ctx)
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return g
}

const small = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestRedirectedRequest sends requests of programs that assume a direct connection to their server.
func TestRedirectedRequest(t *testing.T) {
	for _, tt := range []struct{ name, send, head, host string }{
		{"R158 host names another server", "GET /a?b HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "GET /a?b HTTP/1.1", "192.0.2.1"},
		{"R158 host with a port of its own", "GET /a HTTP/1.1\r\nHost: x.example:99\r\n\r\n", "GET /a HTTP/1.1", "x.example:99"},
		{"R158 absolute-form after origin-form", "GET http://victim.example/v HTTP/1.1\r\nHost: o.example\r\n\r\n", "GET /v HTTP/1.1", "victim.example"},
		{"R160 POST passes through", "POST /a HTTP/1.1\r\nHost: x.example\r\nContent-Length: 0\r\n\r\n", "POST /a HTTP/1.1", "x.example"},
		{"R161 no host", "GET /a HTTP/1.0\r\n\r\n", "GET /a HTTP/1.1", ""},
		{"path begins with two slashes", "GET //a/b HTTP/1.1\r\nHost: x.example\r\nCookie: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "GET http://x.example//a/b HTTP/1.1", "x.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, heads := answer(t, small)
			g := redirected(t, o.addr)
			c := g.send("GET /first HTTP/1.1\r\nHost: o.example\r\n\r\n") // these bytes classify the connection
			c.wantHead("200")
			c.want("ok")
			<-heads
			c.send(tt.send)
			c.wantHead("200")
			c.want("ok")
			head := <-heads
			if tt.host == "" {
				tt.host = o.addr
			}
			if got := fieldsOf(head, "Host"); !strings.HasPrefix(head, tt.head+"\r\n") || len(got) != 1 || got[0] != tt.host {
				t.Errorf("the origin got %q; want %q for %s", head, tt.head, tt.host)
			}
		})
	}
	t.Run("R158 CONNECT later goes nowhere", func(t *testing.T) {
		o, _ := answer(t, small)
		g := redirected(t, o.addr)
		c := g.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		c.wantHead("200")
		c.want("ok")
		c.send("CONNECT victim.example:443 HTTP/1.1\r\nHost: victim.example:443\r\n\r\n")
		c.wantHead("400")
		if len(g.f.dialed) > 0 {
			t.Errorf("dialed %s", <-g.f.dialed)
		}
	})
	t.Run("GETs are transfers", func(t *testing.T) {
		o, _ := answer(t, small)
		g := redirected(t, o.addr)
		c := g.send("GET /big HTTP/1.1\r\nHost: x.example\r\n\r\n")
		c.wantHead("200")
		c.want("ok")
		if q := g.f.last(); q == nil || q.URL.Host != o.addr || q.Host != "x.example" || q.URL.RequestURI() != "/big" || q.URL.Scheme != "http" {
			t.Errorf("the engine got %+v", q)
		}
	})
	t.Run("R185 other users are served: the rules choose", func(t *testing.T) {
		o, _ := answer(t, small)
		g := redirected(t, o.addr, func(c *proxy.Config) {
			c.Users = []uint32{1}
			c.Owner = func(local, remote netip.AddrPort) (uint32, error) {
				if local.String() != o.addr {
					t.Errorf("asked for the owner of a connection to %s", local)
				}
				return 2, nil
			}
		})
		g.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").wantHead("200")
	})
}

// TestRedirectedOther sends bytes that are not a request to a server: they must arrive unchanged.
func TestRedirectedOther(t *testing.T) {
	for _, tt := range []struct{ name, send string }{
		{"R162 SSH", "SSH-2.0-OpenSSH_9.2\r\n"},
		{"R162 binary", "\x16\x03\x01\x02\x00\x01\x00"},
		{"R162 a method and no path", "GET me out of here\r\n"},
		{"R162 a long word", strings.Repeat("A", 40)},
		{"R162 lower case", "get / HTTP/1.1\r\n\r\n"},
		{"R162 space first", " GET / HTTP/1.1\r\n\r\n"},
		{"HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"meant for a proxy there", "GET http://x.example/ HTTP/1.1\r\nHost: x.example\r\n\r\n"},
		{"CONNECT to a proxy there", "CONNECT x.example:443 HTTP/1.1\r\n\r\n"},
		{"R162 half a word, then silence", "GE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := serve(t, echo)
			g := redirected(t, o.addr)
			c := g.send(tt.send)
			c.want(tt.send)
			if to := <-g.f.dialed; to != o.addr {
				t.Errorf("dialed %s", to)
			}
			_ = c.CloseWrite()
			if rest, err := c.rest(); rest != "" || err != nil {
				t.Errorf("then came %q, %v", rest, err)
			}
		})
	}
	t.Run("R162 the server speaks first", func(t *testing.T) {
		o := serve(t, func(c *conn) {
			c.send("220 hello\r\n")
			_, _ = io.Copy(io.Discard, c.br)
		})
		g := redirected(t, o.addr)
		g.dial().want("220 hello\r\n")
	})
	t.Run("R162 a request byte by byte", func(t *testing.T) {
		o, heads := answer(t, small)
		g := redirected(t, o.addr)
		c := g.dial()
		for _, b := range "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" {
			c.send(string(b))
		}
		c.wantHead("200")
		if head := <-heads; !strings.HasPrefix(head, "GET /slow HTTP/1.1\r\n") {
			t.Errorf("the origin got %q", head)
		}
	})
	t.Run("the end comes first", func(t *testing.T) {
		o := serve(t, func(c *conn) {
			if got, err := io.ReadAll(c.br); len(got) > 0 || err != nil {
				t.Errorf("the server got %q, %v", got, err)
			}
			c.send("bye")
		})
		g := redirected(t, o.addr)
		c := g.dial()
		_ = c.CloseWrite()
		c.want("bye")
	})
	t.Run("nobody listens there", func(t *testing.T) {
		o := serve(t, echo)
		o.l.Close()
		g := redirected(t, o.addr)
		if _, err := g.send("SSH-2.0-x\r\n").rest(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the connection ends with %v", err)
		}
	})
}

// TestNotRedirected connects to the port itself: nothing may be dialed, or the proxy would speak to itself.
func TestNotRedirected(t *testing.T) {
	t.Run("R155 no original destination", func(t *testing.T) {
		g := redirected(t, "")
		if rest := g.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").ended(); rest != "" {
			t.Errorf("answered %q", rest)
		}
	})
	t.Run("R155 an own listener", func(t *testing.T) {
		g := redirected(t, "192.0.2.1:80", func(c *proxy.Config) {
			c.Self = func(a netip.AddrPort) bool { return a.String() == "192.0.2.1:80" }
		})
		if rest := g.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").ended(); rest != "" || len(g.f.dialed) > 0 {
			t.Errorf("answered %q, dialed %d", rest, len(g.f.dialed))
		}
	})
}
