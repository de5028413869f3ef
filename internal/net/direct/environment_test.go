package direct_test

import (
	"net/http"
	"os"
	"testing"

	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestMain sets the proxy variables before anything can read them: net/http does so once per process.
func TestMain(m *testing.M) {
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		if err := os.Setenv(name, "http://proxy.invalid:1"); err != nil {
			panic(err)
		}
	}
	if err := os.Setenv("no_proxy", ""); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestEnvironment(t *testing.T) {
	t.Run("R17 proxy variables do not apply", func(t *testing.T) {
		s := ot.New(t, ot.Object{Size: 50})
		p := passThrough(t, dialNodes(s)) // which leads any name to the origin
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://origin.example/object", nil)
		if err != nil {
			t.Fatal(err)
		}
		if with, err := http.ProxyFromEnvironment(r); err != nil || with == nil || with.Host != "proxy.invalid:1" {
			t.Fatalf("the environment names %v, %v", with, err)
		}
		resp, _, err := p.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if q := s.Requests(); len(q) != 1 || q[0].Target != "/object" {
			t.Errorf("origin saw %+v", q)
		}
	})
}
