package systemtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestTrustedLinks: a link that the user does not trust must not carry credentials that plain http reveals, unless there is no
// other link.
func TestTrustedLinks(t *testing.T) {
	no := false
	credentials := []http.Header{
		{"Cookie": {"session=secret"}},
		{"Authorization": {"Basic c2VjcmV0"}},
		{"Authorization": {"Bearer secret"}, "Accept-Encoding": {"gzip"}},
		{"X-Api-Key": {"secret"}},
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		for i, h := range credentials {
			for _, untrusted := range []string{"wifi", "lte"} {
				t.Run(fmt.Sprintf("R205 %s %d keeps off %s", method, i, untrusted), func(t *testing.T) {
					t.Parallel()
					s := New(t, Object{Size: mid}, RateLimit(paced))
					cfg := settings()
					cfg.Link = map[string]config.Link{untrusted: {Trusted: &no}}
					r := newRig(t, s, cfg, "wifi", "lte")
					for range 2 {
						if got := fetchBy(client(t, r.url), method, s.URL(), h); got.err != nil || got.status != http.StatusOK {
							t.Fatal(got)
						}
					}
					for _, q := range s.Requests() {
						if (q.Node == 0) == (untrusted == "wifi") {
							t.Fatalf("%s carried %q", untrusted, q.Header)
						}
					}
				})
			}
		}
	}
	const small = 10_000
	for _, untrusted := range []string{"wifi", "lte"} {
		s := New(t, Object{Size: small})
		cfg := settings()
		cfg.SOCKS = loopbackAddr(t)
		cfg.Link = map[string]config.Link{untrusted: {Trusted: &no}}
		r := newRig(t, s, cfg, "wifi", "lte")
		for _, door := range []string{"CONNECT", "SOCKS"} {
			t.Run("R205 "+door+" keeps plain http off "+untrusted, func(t *testing.T) {
				before := len(s.Requests())
				for _, agent := range []string{"curl/8", "curl/9"} {
					tun := r.begin(t, door, "origin.test:80", agent)
					for range 2 {
						fmt.Fprint(tun, "GET /object HTTP/1.1\r\nHost: origin.test\r\nCookie: a=1\r\n\r\n")
						resp, err := http.ReadResponse(tun.br, nil)
						if err != nil {
							t.Fatal(err)
						}
						if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != small {
							t.Fatal(n, err)
						}
					}
				}
				for _, q := range s.Requests()[before:] {
					if (q.Node == 0) == (untrusted == "wifi") {
						t.Errorf("%s carried a request", untrusted)
					}
				}
			})
			t.Run("R205 "+door+" keeps what is not TLS off "+untrusted+", and lets the server speak first", func(t *testing.T) {
				bad := map[string]*path{"wifi": r.wifi, "lte": r.lte}[untrusted]
				before := bad.dialed()
				tun := r.begin(t, door, "origin.test:80", "mail/1")
				fmt.Fprint(tun, "\x00 a protocol of its own\r\n\r\n")
				_, _ = tun.br.ReadByte() // the server of the test hangs up
				silent := r.begin(t, door, "origin.test:80", "mail/1")
				until(t, "a tunnel whose client is silent is dialed", limit, func() bool { return r.d.Status().Tunnels > 0 })
				silent.Close()
				if n := bad.dialed(); n != before {
					t.Errorf("%d connections over %s", n-before, untrusted)
				}
			})
		}
	}
	t.Run("R205 TLS shows nothing: over the untrusted link, too", func(t *testing.T) {
		s := New(t, Object{Size: small})
		cfg := settings()
		cfg.Link = map[string]config.Link{"wifi": {Trusted: &no}}
		r := newRig(t, s, cfg, "wifi", "lte")
		c, err := net.Dial("tcp", r.url.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n\x16\x03\x01\x02\x00\x01") // at once
		until(t, "the first link is dialed", limit, func() bool { return r.wifi.dialed() > 0 })
	})
	t.Run("R205 one link, if none is trusted", func(t *testing.T) {
		t.Parallel()
		s := New(t, Object{Size: mid}, RateLimit(paced))
		cfg := settings()
		cfg.Link = map[string]config.Link{"wifi": {Trusted: &no}, "lte": {Trusted: &no}}
		r := newRig(t, s, cfg, "wifi", "lte")
		whole(t, r.get(credentials[0]), s.Object())
		for _, q := range s.Requests() {
			if q.Node != 0 {
				t.Fatalf("the second link carried %q", q.Header)
			}
		}
	})
	t.Run("R205 the untrusted link, when the trusted one is down", func(t *testing.T) {
		t.Parallel()
		s := New(t, Object{Size: mid})
		cfg := settings()
		cfg.Link = map[string]config.Link{"lte": {Trusted: &no}}
		r := newRig(t, s, cfg, "wifi", "lte")
		r.source.Set(named("lte")...)
		until(t, "wifi is down", limit, func() bool { return r.state("wifi") == "down" })
		whole(t, r.get(credentials[0]), s.Object())
	})
	t.Run("R205 not the untrusted link that appears later", func(t *testing.T) {
		t.Parallel()
		s := New(t, Object{Size: long}, RateLimit(slow))
		cfg := settings()
		cfg.Link = map[string]config.Link{"lte": {Trusted: &no}}
		r := newRig(t, s, cfg, "wifi")
		d := r.open(credentials[0])
		d.read(1 << 20)
		r.source.Set(named("wifi", "lte")...)
		until(t, "lte is up", limit, func() bool { return r.state("lte") == "up" })
		d.rest(s.Object())
		if n := r.carried("lte"); n > 0 {
			t.Errorf("the untrusted link carried %d bytes", n)
		}
	})
	t.Run("R205 both links, without credentials", func(t *testing.T) {
		t.Parallel()
		s := New(t, Object{Size: mid}, RateLimit(paced))
		cfg := settings()
		cfg.Link = map[string]config.Link{"wifi": {Trusted: &no}}
		r := newRig(t, s, cfg, "wifi", "lte")
		whole(t, r.get(nil), s.Object())
		for _, name := range []string{"wifi", "lte"} {
			if r.carried(name) == 0 {
				t.Errorf("%s carried nothing", name)
			}
		}
	})
}

// begin opens a tunnel of a program to an address by one of the doors.
func (r *rig) begin(t *testing.T, door, addr, agent string) *tunnel {
	t.Helper()
	to := map[string]string{"CONNECT": r.url.Host, "SOCKS": r.d.Settings().SOCKS}[door]
	c, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	tun := &tunnel{c, bufio.NewReader(c)}
	if door == "CONNECT" {
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n", addr, addr, agent)
		if resp, err := http.ReadResponse(tun.br, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		return tun
	}
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	fmt.Fprintf(c, "\x05\x01\x00\x05\x01\x00\x03%c%s%c%c", len(host), host, n>>8, n&0xff)
	reply := make([]byte, 12)
	if _, err := io.ReadFull(tun.br, reply); err != nil || reply[3] != 0 {
		t.Fatalf("%q, %v", reply, err)
	}
	return tun
}

// loopbackAddr returns an address at which nothing listens.
func loopbackAddr(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
