package daemon

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	. "github.com/tributary-http/tributary/internal/origin/origintest"
)

// TestTrustedLinks: a link that the user does not trust must not carry credentials that plain http reveals, unless there is no
// other link.
func TestTrustedLinks(t *testing.T) {
	no := false
	credentials := []http.Header{
		{"Cookie": {"session=secret"}},
		{"Authorization": {"Basic c2VjcmV0"}},
		{"Authorization": {"Bearer secret"}, "Accept-Encoding": {"gzip"}},
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
