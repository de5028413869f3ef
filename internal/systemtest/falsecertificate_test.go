package systemtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// TestR229PrivateFalseCertificate: a link that shows a false certificate for a host keeps the proxy of a command neither from opening its
// tunnels, if another link shows a good one, nor from giving them to the program as they are, if none does.
func TestR229PrivateFalseCertificate(t *testing.T) {
	const size = 200_000
	s, portal := origintest.New(t, origintest.Object{Size: size}), origintest.New(t, origintest.Object{Size: size})
	good, bad := s.Secure(), portal.Secure()
	for _, c := range []struct {
		name, wifi, lte string
		works           bool
	}{
		{"one link", bad.Addr(0), good.Addr(0), true},
		{"all links", bad.Addr(0), bad.Addr(0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			authority, err := intercept.New("test", nil)
			if err != nil {
				t.Fatal(err)
			}
			log := slog.New(slog.DiscardHandler)
			opener, err := intercept.NewInterceptor(intercept.Config{Authority: authority, Pins: intercept.OpenPins("", log)})
			if err != nil {
				t.Fatal(err)
			}
			dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, map[string]string{"wifi": c.wifi, "lte": c.lte}[l.Name])
			}
			p, err := daemon.NewPrivateWith(settings(), log, daemon.PrivateOptions{
				Users: []uint32{uint32(os.Getuid())}, Intercept: opener, Carried: func(string, int64) {},
			}, transport.Config{Source: discover.WithPaths(discover.NewStatic(named("wifi", "lte")...), link.DialFunc(dial).Path), Roots: good.Roots})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { within(t, "stop", p.Stop) })
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			proxy, err := url.Parse(p.URL)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(authority.Certificate())
			tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
			defer tr.CloseIdleConnections()
			for range 2 {
				resp, err := (&http.Client{Transport: tr}).Get("https://a.secure.test/")
				if !c.works {
					if err == nil || len(opener.Unopened()) != 1 || opener.Unopened()[0].Reason != intercept.Unverified {
						t.Errorf("%v, %v", err, opener.Unopened())
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || n != size || len(opener.Unopened()) > 0 {
					t.Errorf("%d bytes, %v, %v", n, err, opener.Unopened())
				}
			}
		})
	}
}
