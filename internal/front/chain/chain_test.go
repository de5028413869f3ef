package chain

import (
	"net/http"
	"net/url"
	"testing"
)

// TestCheck: where a server on the internet may redirect to.
func TestCheck(t *testing.T) {
	for host, inward := range map[string]bool{
		"example.com": false, "example.com.": false, "8.8.8.8": false, "[2001:4860:4860::8888]": false, "xn--bcher-kva.example": false,
		"127.0.0.1": true, "127.1": true, "0x7f.1": true, "2130706433": true, "0177.0.0.1": true, "[::1]": true, "::1": true,
		"[::ffff:127.0.0.1]": true, "[64:ff9b::a00:1]": true, "[fe80::1]": true, "localhost": true, "localhost.": true, "a.localhost": true,
		"10.1.2.3": true, "192.168.1.1": true, "100.64.0.1": true, "169.254.169.254": true, "[fd00::1]": true, "router": true,
		"router.lan": true, "nas.local": true, "metadata.google.internal": true, "": true, "0.0.0.0": true,
	} {
		t.Run("R240 "+host, func(t *testing.T) {
			if err := Check(host); (err != nil) != inward {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSpell(t *testing.T) {
	for from, to := range map[string]string{
		"/100%.zip": "/100%25.zip", "/a%20b": "/a%20b", "/%": "/%25", "/%4": "/%254", "/%zz%41": "/%25zz%41", "/%%41": "/%25%41",
		"/a?q=100%": "/a?q=100%", "/100%?q=%#50%": "/100%25?q=%#50%25", "http://h/5%&": "http://h/5%25&", "": "",
	} {
		t.Run("R239 "+from, func(t *testing.T) {
			if got := Spell(from); got != to {
				t.Errorf("%q, want %q", got, to)
			}
			if u, err := url.Parse(to); err != nil {
				t.Errorf("%v: %v", u, err)
			}
		})
	}
}

func TestCookies(t *testing.T) {
	at := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	set := func(cookies ...string) http.Header { return http.Header{"Set-Cookie": cookies} }
	for _, c := range []struct {
		name, from, to, own, want string
		set                       []string
	}{
		{"R238 the same origin", "http://a.example/x", "http://a.example/y", "", "k=1", []string{"k=1; Path=/"}},
		{"R238 the default port", "https://a.example/x", "https://A.example:443/y", "", "k=1", []string{"k=1; Path=/; Secure"}},
		{"R238 another host", "http://a.example/x", "http://b.example/y", "", "", []string{"k=1; Path=/"}},
		{"R238 another host of the domain", "http://a.example/x", "http://b.a.example/y", "", "", []string{"k=1; Path=/; Domain=a.example"}},
		{"R238 another port", "http://a.example/x", "http://a.example:8080/y", "", "", []string{"k=1; Path=/"}},
		{"R238 another scheme", "https://a.example/x", "http://a.example/y", "", "", []string{"k=1; Path=/"}},
		{"R238 another path", "http://a.example/x/", "http://a.example/y/", "", "", []string{"k=1; Path=/x"}},
		{"R238 another domain", "http://a.example/x", "http://a.example/y", "", "", []string{"k=1; Path=/; Domain=b.example"}},
		{"R238 it was deleted", "http://a.example/x", "http://a.example/y", "", "", []string{"k=1; Path=/; Max-Age=0"}},
		{"R238 beside the client's", "http://a.example/x", "http://a.example/y", "s=2; k=0", "s=2; k=1", []string{"k=1; Path=/"}},
		{"R238 the client's alone", "http://a.example/x", "http://b.example/y", "s=2", "s=2", []string{"k=1; Path=/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all Cookies
			all.Keep(at(c.from), set(c.set...))
			h := http.Header{}
			if c.own != "" {
				h.Set("Cookie", c.own)
			}
			all.Add(at(c.to), h)
			if got := h.Get("Cookie"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
