package systemtest

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// unbound is a Binder that leaves sockets unbound, since these tests use only loopback.
type unbound struct{}

func (unbound) Control(link.Link) func(string, string, syscall.RawConn) error {
	return func(string, string, syscall.RawConn) error { return nil }
}

// startGuarded starts the proxy with its own dialer.
func startGuarded(t *testing.T, cfg config.Config, links ...link.Link) (*daemon.Daemon, *url.URL) {
	t.Helper()
	d, u, stop, err := daemon.StartWith(t.Context(), cfg, slog.New(slog.DiscardHandler),
		transport.Config{Source: discover.NewStatic(links...), Binder: unbound{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { within(t, "stop of the proxy", stop) })
	proxy, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	return d, proxy
}

// ask sends a request unchanged and returns the status, header and body of the answer.
func ask(t *testing.T, proxy *url.URL, request string) (status int, header http.Header, body string) {
	t.Helper()
	c, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestDestinationFilter(t *testing.T) {
	loopback := func(name string) link.Link {
		return link.Link{Name: name, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	}
	s := origintest.New(t, origintest.Object{Size: 100_000})
	host := s.Addr(0)
	_, port, _ := net.SplitHostPort(host)
	t.Run("R183 R194 denied addresses get one answer on every way, and no connection", func(t *testing.T) {
		d, proxy := startGuarded(t, settings(), loopback("a"), loopback("b"))
		texts := map[string]bool{}
		own := proxy.Host
		for _, h := range []string{
			host, "localhost:" + port, "[::ffff:127.0.0.1]:" + port, "0.0.0.0:" + port, "169.254.169.254", "[::1]:1", own,
			"localhost:" + proxy.Port(), "[64:ff9b::7f00:1]:" + port,
		} {
			for _, r := range []string{
				"GET http://%s/object HTTP/1.1\r\nHost: x\r\n\r\n",
				"POST http://%s/object HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
			} {
				status, header, body := ask(t, proxy, fmt.Sprintf(r, h))
				if status != 403 || header.Get("Proxy-Status") != "tributary; error=destination_ip_prohibited" {
					t.Errorf("%s: %d %v", h, status, header)
				}
				texts[body] = true
			}
			if _, _, err := net.SplitHostPort(h); err != nil {
				h += ":443"
			}
			status, _, body := ask(t, proxy, "CONNECT "+h+" HTTP/1.1\r\nHost: x\r\n\r\n")
			if status != 403 {
				t.Errorf("CONNECT %s: %d", h, status)
			}
			texts[body] = true
		}
		if len(texts) != 1 {
			t.Errorf("%d texts: %v", len(texts), texts)
		}
		if n := len(s.Requests()); n != 0 {
			t.Errorf("%d requests arrived", n)
		}
		for _, l := range d.Status().Links {
			if l.State != "up" || l.Bans != 0 {
				t.Errorf("%s is %s, %d bans", l.Name, l.State, l.Bans)
			}
		}
	})
	t.Run("R183 allow_destinations, R182 but never an own listener", func(t *testing.T) {
		cfg := settings()
		cfg.Admin = "127.0.0.1:0"
		cfg.AllowDestinations = []string{"127.0.0.0/8"}
		d, proxy := startGuarded(t, cfg, loopback("a"))
		whole(t, fetch(client(t, proxy), s.URL(), nil), s.Object())
		for _, o := range d.Listeners() {
			for _, h := range []string{o.String(), fmt.Sprintf("[::ffff:127.0.0.1]:%d", o.Port()), fmt.Sprintf("127.9.9.9:%d", o.Port())} {
				if status, _, _ := ask(t, proxy, "GET http://"+h+"/metrics HTTP/1.1\r\nHost: x\r\n\r\n"); status != 403 {
					t.Errorf("own listener by %s: %d", h, status)
				}
			}
		}
	})
	t.Run("R184 deny_private", func(t *testing.T) {
		cfg := settings()
		cfg.DenyPrivate = true
		_, proxy := startGuarded(t, cfg, loopback("a"))
		for _, h := range []string{"10.0.0.1", "192.168.1.1:8000", "[fd00::1]"} {
			status, _, body := ask(t, proxy, "GET http://"+h+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if status != 403 || !strings.Contains(body, "allow_destinations") {
				t.Errorf("%s: %d %s", h, status, body)
			}
		}
	})
}
