package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// named resolves every name to one address.
type named struct {
	*forwarder
	to string
}

func (n *named) DialTunnel(ctx context.Context, addr string) (net.Conn, string, error) {
	c, l, err := n.forwarder.DialTunnel(ctx, n.to)
	return c, l, err
}

// greets returns a DialOrigin that trusts roots.
func (n *named) greets(roots *x509.CertPool) func(context.Context, string) (transport.Dialed, error) {
	return func(ctx context.Context, addr string) (transport.Dialed, error) {
		c, l, err := n.DialTunnel(ctx, addr)
		host, _, _ := net.SplitHostPort(addr)
		return transport.Dialed{Conn: c, Link: l, Greet: func(ctx context.Context) (_ string, asked bool, err error) {
			tc := tls.Client(c, &tls.Config{
				RootCAs: roots, ServerName: host, NextProtos: []string{"h2", "http/1.1"},
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					asked = true
					return &tls.Certificate{}, nil
				},
			})
			defer tc.Close()
			err = tc.HandshakeContext(ctx)
			return tc.ConnectionState().NegotiatedProtocol, asked, err
		}}, err
	}
}

// opening is a proxy that opens the tunnels to an https origin.
type opening struct {
	*rig
	origin    *httptest.Server
	authority *intercept.Authority
	opener    *intercept.Interceptor

	unverified bool // the proxy does not trust the origin

	mu      sync.Mutex
	program string // of the clients
	seen    []string
}

func (o *opening) is(program string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.program = program
}

// requests returns what the origin was asked for.
func (o *opening) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

const openedHost = "example.com" // httptest's certificate is for it

// opens starts an origin and the proxy in front of it. The proxy trusts the origin, unless change says otherwise.
func opens(t *testing.T, h http.HandlerFunc, change func(o *opening, c *intercept.Config)) *opening {
	t.Helper()
	o := &opening{}
	o.origin = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.seen = append(o.seen, r.Method+" "+r.RequestURI+" "+r.Host+" "+r.Proto)
		o.mu.Unlock()
		if h != nil {
			h(w, r)
		} else {
			fmt.Fprint(w, "hello")
		}
	}))
	o.origin.EnableHTTP2 = true
	o.origin.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	var err error
	if o.authority, err = intercept.New("test", nil); err != nil {
		t.Fatal(err)
	}
	c := intercept.Config{Authority: o.authority, Pins: intercept.OpenPins("", slog.New(slog.DiscardHandler))}
	if change != nil {
		change(o, &c)
	}
	o.origin.StartTLS()
	t.Cleanup(o.origin.Close)
	roots := x509.NewCertPool()
	if !o.unverified {
		roots.AddCert(o.origin.Certificate())
	}
	if o.opener, err = intercept.NewInterceptor(c); err != nil {
		t.Fatal(err)
	}
	o.rig = start(t, func(p *proxy.Config) {
		n := &named{p.Transport.(*forwarder), o.origin.Listener.Addr().String()}
		n.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		n.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, n.to)
		}
		p.Transport, p.Intercept, p.DialOrigin = n, o.opener, n.greets(roots)
		p.Program = func(_, _ netip.AddrPort, _ []string) string {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.program
		}
	})
	return o
}

// trusting returns TLS settings of a client that trusts the authority.
func (o *opening) trusting(protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(o.authority.Certificate())
	return &tls.Config{RootCAs: roots, ServerName: openedHost, NextProtos: protocols}
}

// pinning returns TLS settings of a client that trusts the origin's own certificate only.
func (o *opening) pinning(protocols ...string) *tls.Config {
	c := o.trusting(protocols...)
	c.RootCAs = x509.NewCertPool()
	c.RootCAs.AddCert(o.origin.Certificate())
	return c
}

// connect returns a tunnel to a host.
func (o *opening) connect(addr string) *conn {
	o.t.Helper()
	c := o.send("CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
	c.wantHead("200")
	return c
}

// handshake does the TLS handshake in a new tunnel.
func (o *opening) handshake(c *tls.Config) (*tls.Conn, error) {
	o.t.Helper()
	nc := tls.Client(o.connect(openedHost+":443"), c)
	return nc, nc.Handshake()
}

func (o *opening) must(c *tls.Config) *tls.Conn {
	o.t.Helper()
	nc, err := o.handshake(c)
	if err != nil {
		o.t.Fatal(err)
	}
	return nc
}

// client returns an HTTP client that uses the proxy.
func (o *opening) client(c *tls.Config, h2 bool) *http.Client {
	t := &http.Transport{
		TLSClientConfig: c, ForceAttemptHTTP2: h2,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			return o.handshake(c)
		},
	}
	o.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// issuedByUs reports whether a client sees a certificate of the authority.
func (o *opening) issuedByUs(c *tls.Conn) bool {
	return c.ConnectionState().PeerCertificates[0].Issuer.CommonName == "test"
}

func (o *opening) wantUnopened(reason intercept.Reason) {
	o.t.Helper()
	if got := o.opener.Unopened(); len(got) != 1 || got[0].Reason != reason {
		o.t.Errorf("unopened %v, want %q", got, reason)
	}
}

// TestR216Opened: the requests in a tunnel reach the origin as in absolute-form, and the client speaks the origin's protocol.
func TestR216Opened(t *testing.T) {
	for _, c := range []struct {
		name           string
		origin, offers []string // ALPN of the origin and of the client
		want           string
	}{
		{name: "both speak HTTP/2", origin: []string{"h2", "http/1.1"}, offers: []string{"h2", "http/1.1"}, want: "h2"},
		{name: "the origin speaks HTTP/1.1 only", origin: []string{"http/1.1"}, offers: []string{"h2", "http/1.1"}, want: "http/1.1"},
		{name: "the origin knows no ALPN", offers: []string{"h2", "http/1.1"}, want: "http/1.1"},
		{name: "the client speaks HTTP/1.1 only", origin: []string{"h2", "http/1.1"}, offers: []string{"http/1.1"}, want: "http/1.1"},
		{name: "the client knows no ALPN", origin: []string{"h2", "http/1.1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := opens(t, nil, func(o *opening, _ *intercept.Config) {
				s := o.origin
				s.EnableHTTP2 = false
				s.TLS = &tls.Config{NextProtos: c.origin}
				if c.origin == nil || c.origin[0] != "h2" {
					s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
				} else {
					s.EnableHTTP2 = true
				}
			})
			nc := o.must(o.trusting(c.offers...))
			if got := nc.ConnectionState().NegotiatedProtocol; got != c.want || !o.issuedByUs(nc) {
				t.Errorf("the client speaks %q, want %q; issuer %v", got, c.want, nc.ConnectionState().PeerCertificates[0].Issuer)
			}
			nc.Close()
			for range 2 { // then the origin is known
				resp, body := get(t, o.client(o.trusting(c.offers...), c.want == "h2"), "https://"+openedHost+"/a//b?c=%2f")
				if body != "hello" || resp.StatusCode != http.StatusOK {
					t.Errorf("status %d, body %q", resp.StatusCode, body)
				}
				last := o.f.last()
				got := last.URL.Scheme + " " + last.URL.Host + last.URL.Opaque + " " + last.Host
				if got != "https example.com:443/a//b?c=%2f example.com" {
					t.Errorf("the transport was asked for %q", got)
				}
			}
			for _, seen := range o.requests() {
				if !strings.HasPrefix(seen, "GET /a//b?c=%2f example.com ") {
					t.Errorf("the origin was asked for %q", seen)
				}
			}
			if got := o.opener.Unopened(); len(got) > 0 {
				t.Errorf("unopened: %v", got)
			}
		})
	}
}

// TestR211UnverifiedOrigin: a bad certificate of an origin is never hidden behind a valid one of ours.
func TestR211UnverifiedOrigin(t *testing.T) {
	o := opens(t, nil, func(o *opening, _ *intercept.Config) { o.unverified = true })
	nc, err := o.handshake(o.trusting("http/1.1"))
	if !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Fatalf("the client sees %v", err)
	}
	nc.Close()
	o.wantUnopened(intercept.Unverified)
	nc = o.must(o.pinning("http/1.1")) // a client may still accept it by its own rules
	if o.issuedByUs(nc) {
		t.Error("the certificate is ours")
	}
	if got := o.requests(); got != nil {
		t.Errorf("the origin was asked for %v", got)
	}
}

// TestR212ClientCertificate: an origin that asks for a client certificate gets the client's, through a tunnel.
func TestR212ClientCertificate(t *testing.T) {
	o := opens(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.TLS.PeerCertificates))
	}, func(o *opening, _ *intercept.Config) {
		o.origin.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	})
	for range 2 {
		c := o.pinning()
		c.Certificates = o.origin.TLS.Certificates
		if _, body := get(t, o.client(c, false), "https://"+openedHost+"/"); body != "1" {
			t.Errorf("the origin got %s certificates", body)
		}
	}
	o.wantUnopened(intercept.ClientCertificate)
}

// TestR215Pinning: a program that does not accept the authority's certificate gets a tunnel from its second attempt on; others do
// not.
func TestR215Pinning(t *testing.T) {
	o := opens(t, nil, nil)
	o.is("/bin/pins")
	first := o.connect(openedHost + ":443")
	if err := tls.Client(first, o.pinning("http/1.1")).Handshake(); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Fatalf("the first try: %v", err)
	}
	first.ended() // the proxy has read the alert
	nc := o.must(o.pinning("http/1.1"))
	if o.issuedByUs(nc) {
		t.Error("the second try was opened")
	}
	o.wantUnopened(intercept.Pinned)
	o.is("/bin/trusts")
	if nc = o.must(o.trusting("http/1.1")); !o.issuedByUs(nc) {
		t.Error("another program gets a tunnel, too")
	}
}

// TestR215PinningOpenSSL: with TLS 1.3 OpenSSL sends the alert as it is.
func TestR215PinningOpenSSL(t *testing.T) {
	o := opens(t, nil, nil)
	nc := o.connect(openedHost + ":443")
	_ = tls.Client(silenced{nc}, &tls.Config{ServerName: openedHost, NextProtos: []string{"http/1.1"}}).Handshake()
	nc.send("\x15\x03\x03\x00\x02\x02\x30") // unknown_ca
	nc.ended()
	if nc := o.must(o.pinning("http/1.1")); o.issuedByUs(nc) {
		t.Error("the second try was opened")
	}
	o.wantUnopened(intercept.Pinned)
}

// TestR215NoPinWithoutAlert: a connection that ends for another reason says nothing about what the program trusts.
func TestR215NoPinWithoutAlert(t *testing.T) {
	for name, leave := range map[string]func(c *conn){
		"closes after the ClientHello": func(c *conn) {
			_ = tls.Client(silenced{c}, hello12).Handshake()
			c.Close()
		},
		"resets": func(c *conn) {
			_ = tls.Client(silenced{c}, hello12).Handshake()
			_ = c.SetLinger(0)
			c.Close()
		},
		"another alert": func(c *conn) {
			_ = tls.Client(silenced{c}, hello12).Handshake()
			c.send("\x15\x03\x03\x00\x02\x02\x28") // handshake_failure
			c.ended()
		},
		"another alert, TLS 1.3": func(c *conn) {
			_ = tls.Client(silenced{c}, &tls.Config{ServerName: openedHost, NextProtos: []string{"http/1.1"}}).Handshake()
			c.send("\x15\x03\x03\x00\x02\x02\x50") // internal_error
			c.ended()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := opens(t, nil, nil)
			leave(o.connect(openedHost + ":443"))
			if nc := o.must(o.trusting("http/1.1")); !o.issuedByUs(nc) {
				t.Error("the next connection is a tunnel")
			}
			if strings.HasPrefix(name, "another alert") {
				if got := o.opener.Unopened(); len(got) > 0 {
					t.Errorf("unopened: %v", got)
				}
			} else {
				for len(o.opener.Unopened()) == 0 { // the proxy sees the end a moment later
					runtime.Gosched()
				}
				o.wantUnopened(intercept.Closed) // said, but without effect: it was only one
			}
		})
	}
}

// TestR215Closed: a program that leaves twice without a request gets a tunnel; one that has sent a request does not.
func TestR215Closed(t *testing.T) {
	o := opens(t, nil, nil)
	any := o.trusting("http/1.1")
	any.InsecureSkipVerify = true
	leaves := func() (opened bool) {
		t.Helper()
		nc := o.must(any)
		defer nc.Close()
		return o.issuedByUs(nc)
	}
	for range 2 {
		if !leaves() {
			t.Error("a tunnel at once")
		}
	}
	for leaves() { // the proxy sees the end of a connection a moment later
	}
	o.wantUnopened(intercept.Closed)
	o.mu.Lock()
	o.program = "/bin/other"
	o.mu.Unlock()
	if _, body := get(t, o.client(o.trusting("http/1.1"), false), "https://"+openedHost+"/"); body != "hello" {
		t.Errorf("%q", body)
	}
	for range 5 {
		if !leaves() {
			t.Error("a program that has sent a request gets a tunnel")
		}
	}
}

// TestR212OtherProtocol: what is not HTTP on port 443 is left alone from the second connection on, whoever speaks first.
func TestR212OtherProtocol(t *testing.T) {
	for name, talk := range map[string]func(nc *tls.Conn) error{
		"the client speaks first": func(nc *tls.Conn) error { _, err := nc.Write([]byte("\x00\x01echo")); return err },
		"the server speaks first": func(*tls.Conn) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := opens(t, nil, nil)
			nc := o.must(o.trusting())
			if err := talk(nc); err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(nc); len(b) > 0 { // the other protocol must not see an HTTP response
				t.Errorf("%q, %v", b, err)
			}
			if nc := o.must(o.pinning()); o.issuedByUs(nc) {
				t.Error("the second connection is opened, too")
			}
			o.wantUnopened(intercept.OtherProtocol)
		})
	}
}

// TestR212AbsoluteForm: lftp names the whole URL in an opened tunnel, without ALPN. It gets the object.
func TestR212AbsoluteForm(t *testing.T) {
	o := opens(t, nil, nil)
	nc := o.must(o.trusting())
	defer nc.Close()
	if _, err := io.WriteString(nc, "GET https://"+openedHost+"/ HTTP/1.1\r\nHost: "+openedHost+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(nc); !strings.HasPrefix(string(b), "HTTP/1.1 200 ") || !strings.Contains(string(b), "hello") {
		t.Errorf("%q, %v", b, err)
	}
}

var hello12 = &tls.Config{ServerName: openedHost, NextProtos: []string{"http/1.1"}, MaxVersion: tls.VersionTLS12}

// silenced sends a ClientHello and fails to read the answer.
type silenced struct{ net.Conn }

func (silenced) Read([]byte) (int, error) { return 0, io.EOF }
func (s silenced) Write(p []byte) (int, error) {
	if len(p) > 0 && p[0] == 22 {
		return s.Conn.Write(p)
	}
	return len(p), nil // no alert
}
func (silenced) Close() error { return nil }

// TestR212TunnelStays: anything other than HTTP over TLS to the named host passes through unchanged.
func TestR212TunnelStays(t *testing.T) {
	hello := func(c *tls.Config) func(t *testing.T, o *opening, c *conn) {
		return func(t *testing.T, o *opening, nc *conn) {
			c := c.Clone()
			c.InsecureSkipVerify = true
			tc := tls.Client(nc, c)
			if err := tc.Handshake(); err != nil {
				t.Fatal(err)
			}
			if o.issuedByUs(tc) {
				t.Error("it was opened")
			}
		}
	}
	for _, c := range []struct {
		name, addr string
		do         func(t *testing.T, o *opening, c *conn)
		reason     intercept.Reason // "" = nobody wanted it open
		only       []string
	}{
		{name: "another name in the ClientHello", do: hello(&tls.Config{ServerName: "www.example.com"}), reason: intercept.OtherProtocol},
		{name: "no name in the ClientHello", do: hello(&tls.Config{}), reason: intercept.OtherProtocol},
		{name: "gRPC", do: hello(&tls.Config{ServerName: openedHost, NextProtos: []string{"h2"}}), reason: intercept.OtherProtocol},
		{name: "another port without ALPN", addr: openedHost + ":993", do: hello(&tls.Config{ServerName: openedHost}), reason: intercept.OtherProtocol},
		{name: "a host on the list", addr: "www.paypal.com:443", do: hello(&tls.Config{ServerName: "www.paypal.com"}), reason: intercept.Excluded},
		{name: "beyond --only", only: []string{"example.org"}, do: hello(&tls.Config{ServerName: openedHost})},
		{name: "no TLS", do: func(t *testing.T, _ *opening, c *conn) {
			c.send("GET / HTTP/1.0\r\n\r\n") // an https server answers that with an error
			if got := c.ended(); !strings.Contains(got, "HTTP request to an HTTPS server") {
				t.Errorf("got %q", got)
			}
		}, reason: intercept.OtherProtocol},
		{name: "a broken ClientHello", do: func(_ *testing.T, _ *opening, c *conn) {
			c.send("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
			c.ended() // the origin's alert
		}, reason: intercept.OtherProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := opens(t, nil, func(_ *opening, i *intercept.Config) { i.Only = c.only })
			if c.addr == "" {
				c.addr = openedHost + ":443"
			}
			c.do(t, o, o.connect(c.addr))
			if c.reason == "" {
				if got := o.opener.Unopened(); len(got) > 0 {
					t.Errorf("unopened: %v", got)
				}
			} else {
				o.wantUnopened(c.reason)
			}
		})
	}
}

// TestOnlyOverList: a host that Only names was chosen by the user, and is opened even if it is on the list.
func TestOnlyOverList(t *testing.T) {
	o := opens(t, nil, func(_ *opening, i *intercept.Config) { i.Only = []string{"com"} })
	if nc := o.must(o.trusting("http/1.1")); !o.issuedByUs(nc) {
		t.Error("it was not opened")
	}
}

// TestServerSpeaksFirst: a client may wait for its server to speak first.
func TestServerSpeaksFirst(t *testing.T) {
	origin := serve(t, func(c *conn) {
		c.send("220 hello\r\n")
		c.want("QUIT\r\n")
	})
	o := opens(t, nil, nil)
	o.f.transport.DialContext = nil
	other := start(t, func(p *proxy.Config) {
		n := &named{p.Transport.(*forwarder), origin.addr}
		p.Transport, p.Intercept, p.DialOrigin = n, o.opener, n.greets(nil)
	})
	c := other.send("CONNECT mail.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	c.wantHead("200")
	c.want("220 hello\r\n")
	c.send("QUIT\r\n")
	c.ended()
}

// TestOpenedDialFails: a client sees a failed dial as it does without interception.
func TestOpenedDialFails(t *testing.T) {
	o := opens(t, nil, nil)
	o.f.dialErr = errors.New("no way")
	o.send("CONNECT " + openedHost + ":443 HTTP/1.1\r\nHost: x\r\n\r\n").wantHead("502")
}

// TestOpenedBreaksOff: an answer that ends with the connection must not look complete when it is not.
func TestOpenedBreaksOff(t *testing.T) {
	o := opens(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 500))
		w.(http.Flusher).Flush() // in chunks
		panic(http.ErrAbortHandler)
	}, nil)
	nc := o.must(o.trusting("http/1.1"))
	fmt.Fprintf(nc, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", openedHost)
	if got, err := io.ReadAll(nc); err == nil || len(got) < 500 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	resp, err := o.client(o.trusting("h2", "http/1.1"), true).Get("https://" + openedHost + "/")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("HTTP/2: no error")
	}
}

// TestR214OpenedHost: whatever Host a request has, it goes where the tunnel leads.
func TestR214OpenedHost(t *testing.T) {
	o := opens(t, nil, nil)
	nc := o.must(o.trusting("http/1.1"))
	br := bufio.NewReader(nc)
	for _, c := range []struct{ raw, want, status string }{
		{"GET / HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n", "GET / 127.0.0.1:22 HTTP/1.1", "200"},
		{"GET https://other.example/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x other.example HTTP/1.1", "200"},
		{"GET //double/../%2e%2e/%2F HTTP/1.1\r\nHost: a\r\n\r\n", "double/../%2e%2e/%2F a HTTP/1.1", "200"},
		{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / example.com HTTP/1.1", "200"},
	} {
		fmt.Fprint(nc, c.raw)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("%q: %v", c.raw, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		seen := o.requests()
		if !strings.HasPrefix(resp.Status, c.status) || !strings.HasSuffix(seen[len(seen)-1], c.want) {
			t.Errorf("%q: %s; the origin saw %q, want %q", c.raw, resp.Status, seen[len(seen)-1], c.want)
		}
	}
	for _, host := range o.hosts() {
		if host != openedHost+":443" {
			t.Errorf("a request went to %s", host)
		}
	}
	for _, raw := range []string{
		"GET http://other.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: user:secret@a\r\n\r\n",
		"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n",
	} {
		nc := o.must(o.trusting("http/1.1"))
		before := len(o.requests())
		fmt.Fprint(nc, raw)
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil || resp.StatusCode != http.StatusBadRequest || len(o.requests()) != before {
			t.Errorf("%q: %v, %v, %v", raw, resp, err, o.requests()[before:])
		}
	}
}

// hosts returns where the requests went.
func (o *opening) hosts() (all []string) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	for _, r := range o.f.requests {
		all = append(all, r.URL.Host)
	}
	return all
}

// TestOpenedTogether: requests of one client are concurrent over HTTP/2, including those with credentials of a connection.
func TestOpenedTogether(t *testing.T) {
	o := opens(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	}, nil)
	c := o.client(o.trusting("h2", "http/1.1"), true)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			body := strings.Repeat("x", i*1000)
			r, _ := http.NewRequest(http.MethodPost, "https://"+openedHost+"/", strings.NewReader(body))
			if i%4 == 0 {
				r.Header.Set("Authorization", "NTLM abc")
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
				t.Errorf("%d of %d bytes, %v", len(got), len(body), err)
			}
		})
	}
	all.Wait()
}

// TestOpenedUpgrade: WebSockets work in an opened tunnel.
func TestOpenedUpgrade(t *testing.T) {
	o := opens(t, func(w http.ResponseWriter, _ *http.Request) {
		nc, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer nc.Close()
		_, _ = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.CopyN(nc, buffered, 4)
	}, nil)
	nc := o.must(o.trusting("http/1.1"))
	fmt.Fprintf(nc, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", openedHost)
	br := bufio.NewReader(nc)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	fmt.Fprint(nc, "ping")
	if got, err := io.ReadAll(br); string(got) != "ping" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestOpenedGRPC: a program that turns out to speak gRPC gets a tunnel at its next attempt.
func TestOpenedGRPC(t *testing.T) {
	o := opens(t, nil, nil)
	post := func(c *tls.Config) error {
		resp, err := o.client(c, true).Post("https://"+openedHost+"/", "application/grpc+proto", strings.NewReader("x"))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := post(o.trusting("h2", "http/1.1")); err == nil {
		t.Error("it was sent")
	}
	if err := post(o.pinning("h2", "http/1.1")); err != nil {
		t.Error(err)
	}
	o.wantUnopened(intercept.OtherProtocol)
}
