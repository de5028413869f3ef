package systemtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/gateway"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// doors are the further ways through which an https object is fetched.
type doors struct {
	gateway string       // "host:port"
	run     *http.Client // through the proxy of `tributary run`, in opened tunnels, over HTTP/1.1
	run2    *http.Client // over HTTP/2
}

// openDoors starts a gateway that serves the hosts, and a proxy that opens tunnels, over the first n links.
func (w *twin) openDoors(n int, hosts []string) *doors {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	known, err := gateway.NewHosts(hosts, "")
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	s := gateway.NewServer(gateway.New(gateway.Config{Transport: w.fronts[n].own, Hosts: known, Log: log}))
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	w.t.Cleanup(func() { s.Close(); <-served })

	authority, err := intercept.New("test", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	opener, err := intercept.NewInterceptor(intercept.Config{Authority: authority, Pins: intercept.OpenPins("", log)})
	if err != nil {
		w.t.Fatal(err)
	}
	names := []string{"wifi", "lte"}[:n]
	dial := func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, w.lead(slices.Index(names, l.Name), addr))
	}
	p, err := daemon.NewPrivateWith(settings(), log, daemon.PrivateOptions{Users: []uint32{uint32(os.Getuid())}, Intercept: opener}, transport.Config{
		Source: discover.NewStatic(link.DialFunc(dial).Over(named(names...)...)...), Roots: w.secure.Roots,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { within(w.t, "stop of a private proxy", p.Stop) })
	if err := p.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	proxy, err := url.Parse(p.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate())
	through := func(protocol string) *http.Client {
		tr := &http.Transport{
			Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{protocol}},
			ForceAttemptHTTP2: protocol == "h2", DisableCompression: true, IdleConnTimeout: time.Second,
		}
		w.t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{
			Transport: tr, Timeout: limit,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &doors{l.Addr().String(), through("http/1.1"), through("h2")}
}

// byGateway fetches an https URL through the gateway.
func (d *doors) byGateway(t *testing.T, method, u string, h http.Header) seen {
	return fetchBy(client(t, nil), method, "http://"+d.gateway+"/https/"+strings.TrimPrefix(u, "https://"), h)
}

// ofGateway are fields that the gateway sets or leaves out.
var ofGateway = []string{"Set-Cookie", "X-Content-Type-Options", "Content-Security-Policy", "Cross-Origin-Resource-Policy"}

// without returns an answer without some fields.
func (s seen) without(names []string) seen {
	s.header = s.header.Clone()
	for _, name := range names {
		s.header.Del(name)
	}
	return s
}
