package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

const mid = 1<<20 + 12345 // bytes of most objects

// over starts a gateway over two links. Each leads to its own node of an https origin, whatever the host.
func over(t *testing.T, s *origintest.Server, hosts ...string) (addr string, tr *transport.Transport) {
	t.Helper()
	secure := s.Secure()
	cfg := config.Default()
	cfg.Threshold = 64 << 10
	links := []link.Link{{Name: "wifi", Metric: 100}, {Name: "lte", Metric: 200}}
	dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, secure.Addr(l.Metric/100-1))
	}
	tr, err := transport.New(transport.Config{
		Settings: cfg, Log: slog.New(slog.DiscardHandler), Roots: secure.Roots, Source: discover.NewStatic(link.DialFunc(dial).Over(links...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tr.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); tr.Close() })
	return serve(t, tr, hosts...), tr
}

func TestDivided(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 8 * mid})
	addr, tr := over(t, s, "files.secure.test", "cdn.secure.test")
	resp, body := ask(t, addr, http.MethodGet, "/https/files.secure.test/object")
	if resp.StatusCode != http.StatusOK || resp.ContentLength != 8*mid || !bytes.Equal([]byte(body), s.Object().Bytes(0, 8*mid)) {
		t.Errorf("%s, %d bytes of %d", resp.Status, len(body), resp.ContentLength)
	}
	for _, l := range tr.Status().Links {
		if l.Bytes == 0 {
			t.Errorf("%s brought nothing", l.Name)
		}
	}
	resp, body = ask(t, addr, http.MethodGet, "/https/files.secure.test/object", "Range: bytes=1000-500999")
	if resp.StatusCode != http.StatusPartialContent || !bytes.Equal([]byte(body), s.Object().Bytes(1000, 501_000)) ||
		resp.Header.Get("Content-Range") != "bytes 1000-500999/"+strconv.Itoa(8*mid) {
		t.Errorf("%s, %d bytes, %v", resp.Status, len(body), resp.Header)
	}
	if resp, _ = ask(t, addr, http.MethodGet, "/https/files.secure.test/object", "Range: bytes=999999999-"); resp.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Error(resp.Status)
	}
	resp, body = ask(t, addr, http.MethodHead, "/https/files.secure.test/object")
	if resp.StatusCode != http.StatusOK || resp.ContentLength != 8*mid || body != "" {
		t.Errorf("HEAD: %s, %d", resp.Status, resp.ContentLength)
	}
	if resp, _ = ask(t, addr, http.MethodGet, "/https/files.secure.test/object", "If-None-Match: "+s.Object().ETag); resp.StatusCode != http.StatusNotModified {
		t.Error(resp.Status)
	}
}

// TestCertificates: a server with an invalid certificate is not trusted, over any link.
func TestCertificates(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	addr, _ := over(t, s, "files.example") // the certificate is for another name
	if resp, body := ask(t, addr, http.MethodGet, "/https/files.example/object"); resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "certificate") {
		t.Errorf("%s, %s", resp.Status, body)
	}
}

// signing answers as a server whose first URL redirects to signed ones, which are valid for two requests each. The responses of the
// first signed one break off. The faults second apply to the signed URLs from the second one on.
func signing(signed *atomic.Int64, second ...origintest.Fault) origintest.Fault {
	return func(x *origintest.Exchange) {
		switch _, n, ok := strings.Cut(x.Target, "/signed?"); {
		case !ok:
			origintest.Redirect("https://cdn.secure.test/signed?" + strconv.FormatInt(signed.Add(1), 10))(x)
		case x.Nth > 2:
			origintest.Status(http.StatusForbidden)(x)
		case n == "1":
			origintest.ResetAfter(2 * mid)(x)
		default:
			for _, f := range second {
				f(x)
			}
		}
	}
}

// TestExpiredURLs: signed URLs that expire during a download are renewed from the first URL.
func TestExpiredURLs(t *testing.T) {
	for _, c := range []struct {
		field    string
		from, to int64
	}{{"", 0, 8 * mid}, {"bytes=5000-", 5000, 8 * mid}, {"bytes=5000-8000000", 5000, 8_000_001}} {
		var signed atomic.Int64
		s := origintest.New(t, origintest.Object{Size: 8 * mid}, signing(&signed))
		addr, _ := over(t, s, "files.secure.test", "cdn.secure.test")
		var fields []string
		if c.field != "" {
			fields = []string{"Range: " + c.field}
		}
		resp, body := ask(t, addr, http.MethodGet, "/https/files.secure.test/object", fields...)
		if resp.StatusCode >= 300 || !bytes.Equal([]byte(body), s.Object().Bytes(c.from, c.to)) {
			t.Errorf("%q: %s, %d bytes of %d", c.field, resp.Status, len(body), c.to-c.from)
		}
		if n := signed.Load(); n < 2 {
			t.Errorf("%q: %d URLs: nothing expired", c.field, n)
		}
	}
}

// TestExpiredURLsOfAnotherVersion: the renewed URL must lead to the rest of the same version.
func TestExpiredURLsOfAnotherVersion(t *testing.T) {
	for name, second := range map[string][]origintest.Fault{
		"other version": {origintest.NewVersion()}, "other version, If-Range ignored": {origintest.NewVersion(), origintest.IgnoresIfRange()},
		"still refused": {origintest.Status(http.StatusForbidden)}, "whole": {origintest.NoRanges()},
	} {
		t.Run(name, func(t *testing.T) {
			var signed atomic.Int64
			s := origintest.New(t, origintest.Object{Size: 8 * mid}, signing(&signed, second...))
			addr, _ := over(t, s, "files.secure.test", "cdn.secure.test")
			resp, err := http.Get("http://" + addr + "/https/files.secure.test/object")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err == nil || int64(len(b)) >= 8*mid || !bytes.Equal(b, s.Object().Bytes(0, int64(len(b)))) {
				t.Errorf("%d bytes, %v: it must break off", len(b), err)
			}
			if n := signed.Load(); n != 2 {
				t.Errorf("the first URL was asked %d times", n)
			}
		})
	}
}

// TestExpiredURLsElsewhere: the renewed URL must lead to the same place. Validators and sizes of two objects may agree, as those of
// a mirror that gives them by time and size.
func TestExpiredURLsElsewhere(t *testing.T) {
	for name, second := range map[string]string{
		"R232 another host": "https://mirror.secure.test/signed?", "R232 another path": "https://cdn.secure.test/other/signed?",
		"R232 another port": "https://cdn.secure.test:8443/signed?",
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			s := origintest.New(t, origintest.Object{Size: 8 * mid}, func(x *origintest.Exchange) {
				switch {
				case strings.HasSuffix(x.Target, "/object"):
					origintest.Redirect(map[bool]string{true: "https://cdn.secure.test/signed?1", false: second + "2"}[asked.Add(1) == 1])(x)
				case x.Target != "/signed?1":
					origintest.OtherBytes()(x)
				case x.Nth > 2:
					origintest.Status(http.StatusForbidden)(x)
				default:
					origintest.ResetAfter(2 * mid)(x)
				}
			})
			addr, _ := over(t, s, "files.secure.test", "cdn.secure.test", "cdn.secure.test:8443", "mirror.secure.test")
			resp, err := http.Get("http://" + addr + "/https/files.secure.test/object")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err == nil || len(b) == 0 || !bytes.Equal(b, s.Object().Bytes(0, int64(len(b)))) {
				t.Errorf("%d bytes, %v: it must break off", len(b), err)
			}
			if n := asked.Load(); n != 2 {
				t.Errorf("the first URL was asked %d times", n)
			}
		})
	}
}

// TestBrokenOff: a client that knows the end of a response only by the end of the connection sees that it broke off.
func TestBrokenOff(t *testing.T) {
	for version, want := range map[string]error{"R49 HTTP/1.0": syscall.ECONNRESET, "R49 HTTP/1.1": io.ErrUnexpectedEOF} {
		t.Run(version, func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: mid}, origintest.InChunks(), origintest.Del("Content-Length"), origintest.NoRanges(), origintest.ResetAfter(500_000))
			addr, _ := over(t, s, "files.secure.test")
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_, protocol, _ := strings.Cut(version, " ")
			_, _ = io.WriteString(nc, "GET /https/files.secure.test/object "+protocol+"\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
			if err != nil || resp.ContentLength >= 0 {
				t.Fatalf("%+v, %v", resp, err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, want) {
				t.Errorf("%d bytes, %v; want %v", n, err, want)
			}
		})
	}
}

// unbound is a Binder that leaves sockets unbound.
type unbound struct{}

func (unbound) Control(link.Link) func(network, address string, c syscall.RawConn) error {
	return func(string, string, syscall.RawConn) error { return nil }
}

// TestDNSRebinding: a public name that resolves to a local address is not followed there, whether the user listed it or a redirect
// names it.
func TestDNSRebinding(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var reached atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Store(true)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	wifi := link.Link{Name: "wifi", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}}
	for _, a := range []string{"127.0.0.1", "192.168.1.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0"} {
		tr, err := transport.New(transport.Config{
			Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(wifi), Binder: unbound{},
			Names: func(context.Context, link.Link, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(a)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		stop, err := tr.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		addr := serve(t, tr, "files.example:"+port, "files.example")
		for _, path := range []string{"/https/files.example/x", "/https/files.example:" + port + "/x"} {
			if resp, body := ask(t, addr, http.MethodGet, path); resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s, %s", a, resp.Status, body)
			}
		}
		stop()
		tr.Close()
	}
	l.Close()
	<-done
	if reached.Load() {
		t.Error("something was dialed")
	}
}
