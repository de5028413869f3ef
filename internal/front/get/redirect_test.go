package get

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// redirector serves an object at every path, except for redirects at the paths in to, and records its requests.
type redirector struct {
	object http.Handler
	to     map[string]string

	mu   sync.Mutex
	seen []*http.Request
}

func (s *redirector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, q)
	to, ok := s.to[q.URL.Path]
	s.mu.Unlock()
	if ok {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return
	}
	s.object.ServeHTTP(w, q)
}

func (s *redirector) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func TestRedirects(t *testing.T) {
	o := origintest.Object{Size: mid}
	start := func(t *testing.T, to map[string]string) (*redirector, string) {
		h := &redirector{object: serveObject(o), to: to}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return h, s.URL
	}
	secrets := http.Header{
		"Authorization": {"Bearer t"}, "Cookie": {"a=b"}, "Private-Token": {"p"}, "Accept": {"*/*"}, "User-Agent": {"tributary/9"},
	}

	t.Run("to the same origin", func(t *testing.T) {
		h, url := start(t, map[string]string{"/a": "/b?x=1#f", "/b": "c/d.bin"})
		r := newRig(t, straight, nil)
		res, err := r.get(t.Context(), url+"/a", Options{Header: secrets})
		if err != nil {
			t.Fatal(err)
		}
		r.isObject("a", o) // the name comes from the user's URL, not from the server
		r.bothCarried(res)
		last := map[string]int{}
		for _, q := range h.requests() {
			last[q.URL.Path]++
			if q.Header.Get("Authorization") == "" || q.Header.Get("Cookie") == "" || q.Header.Get("Referer") != "" {
				t.Errorf("%s: %v", q.URL, q.Header)
			}
		}
		// The final URL is pinned: each part is requested there.
		if last["/a"] != 1 || last["/b"] != 1 || last["/c/d.bin"] < 2 {
			t.Errorf("%v", last)
		}
	})
	t.Run("to another origin, and back", func(t *testing.T) {
		// Dropped fields do not come back.
		h2 := &redirector{object: serveObject(o), to: map[string]string{}}
		s2 := httptest.NewServer(h2)
		t.Cleanup(s2.Close)
		first, url := start(t, map[string]string{"/a": s2.URL + "/b"})
		h2.to["/b"] = url + "/c"
		r := newRig(t, straight, nil)
		if _, err := r.get(t.Context(), strings.Replace(url, "//", "//user:secret@", 1)+"/a", Options{Header: secrets}); err != nil {
			t.Fatal(err)
		}
		r.isObject("a", o)
		for _, q := range append(h2.requests(), first.requests()...) {
			has := q.Header.Get("Authorization") + q.Header.Get("Cookie") + q.Header.Get("Private-Token")
			if (has == "") == (q.URL.Path == "/a") || q.Header.Get("User-Agent") != "tributary/9" {
				t.Errorf("%s: %v", q.URL, q.Header)
			}
		}
	})
	t.Run("to another scheme of the same host", func(t *testing.T) {
		second := &redirector{object: serveObject(o)}
		secure, roots := secure(t, false, second)
		_, url := start(t, map[string]string{"/a": "https://example.com/b"}) // host in the certificate
		r := newRig(t, func(_ link.Link, addr string) string {
			if strings.HasSuffix(addr, ":443") {
				return secure.Listener.Addr().String()
			}
			return strings.TrimPrefix(url, "http://")
		}, roots)
		if _, err := r.get(t.Context(), "http://user:secret@example.com/a", Options{Header: secrets}); err != nil {
			t.Fatal(err)
		}
		r.isObject("a", o)
		if len(second.requests()) == 0 {
			t.Error("nothing was asked for there")
		}
		for _, q := range second.requests() {
			if q.Header.Get("Authorization")+q.Header.Get("Cookie")+q.Header.Get("Private-Token") != "" {
				t.Errorf("%s: %v", q.URL, q.Header)
			}
		}
	})
	t.Run("userinfo in a Location is not used", func(t *testing.T) {
		h, url := start(t, map[string]string{})
		h.to["/a"] = strings.Replace(url, "//", "//user:secret@", 1) + "/b"
		r := newRig(t, straight, nil)
		if _, err := r.get(t.Context(), url+"/a", Options{}); err != nil {
			t.Fatal(err)
		}
		for _, q := range h.requests() {
			if q.Header.Get("Authorization") != "" {
				t.Errorf("%s: %v", q.URL, q.Header)
			}
		}
	})
	t.Run("R239 a bare percent sign in the URL and in a Location", func(t *testing.T) {
		h, url := start(t, map[string]string{"/50% off": "/100%.bin?q=%"})
		r := newRig(t, straight, nil)
		if _, err := r.get(t.Context(), url+"/50% off", Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("50% off", o)
		if q := h.requests()[1]; q.RequestURI != "/100%25.bin?q=%" {
			t.Errorf("asked for %s", q.RequestURI)
		}
	})
	t.Run("in a circle", func(t *testing.T) {
		h, url := start(t, map[string]string{"/a": "/b", "/b": "/a"})
		r := newRig(t, straight, nil)
		_, err := r.get(t.Context(), url+"/a", Options{})
		r.fails(err, Server, "more than 20 redirects")
		if n := len(h.requests()); n != maxRedirects+1 {
			t.Errorf("%d requests", n)
		}
		r.holds()
	})
	for name, to := range map[string]string{"nowhere": "", "to another scheme": "ftp://example.com/", "to no URL": "http://[::1"} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, map[string]string{"/a": to})
			r := newRig(t, straight, nil)
			_, err := r.get(t.Context(), url+"/a", Options{})
			r.fails(err, Server, "check the URL")
		})
	}
	t.Run("from http to https", func(t *testing.T) {
		tls, roots := secure(t, true, serveObject(o))
		_, url := start(t, map[string]string{"/a": tls.URL + "/b"})
		r := newRig(t, straight, roots)
		if _, err := r.get(t.Context(), url+"/a", Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("a", o)
	})
	t.Run("from https to http", func(t *testing.T) {
		_, url := start(t, nil)
		tls, roots := secure(t, true, http.RedirectHandler(url+"/b", http.StatusMovedPermanently))
		r := newRig(t, straight, roots)
		_, err := r.get(t.Context(), tls.URL+"/a", Options{})
		r.fails(err, Server, "--allow-downgrade")
		if _, err := r.get(t.Context(), tls.URL+"/a", Options{AllowDowngrade: true}); err != nil {
			t.Fatal(err)
		}
		r.isObject("a", o)
	})
	t.Run("R91 a resume", func(t *testing.T) {
		first, mirror := newMortal(t), newMortal(t)
		mirror.well.Store(true)
		for name, tt := range map[string]struct {
			to      string
			sum     *Checksum
			resumed bool
		}{
			"to the same place":            {first.URL() + "?signed=2", nil, true},
			"to a mirror":                  {mirror.URL(), nil, false},
			"to a mirror, with a checksum": {mirror.URL(), checksum(t, fmt.Sprintf("sha256:%x", first.Object().SHA256())), true},
		} {
			t.Run(name, func(t *testing.T) {
				first.well.Store(false)
				h := &redirector{to: map[string]string{"/object": first.URL() + "?signed=1"}}
				front := httptest.NewServer(h)
				t.Cleanup(front.Close)
				r := newRig(t, straight, nil)
				_, err := r.get(t.Context(), front.URL+"/object", Options{})
				r.fails(err, Server, "--resume")
				first.well.Store(true)
				h.to["/object"] = tt.to
				res, err := r.get(t.Context(), front.URL+"/object", Options{Resume: true, Checksum: tt.sum})
				if err != nil || (res.Resumed > 0) != tt.resumed {
					t.Fatalf("%+v, %v, %q", res, err, r.notes)
				}
				r.isObject("object", first.Object())
			})
		}
	})
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			_, url := start(t, nil)
			s := httptest.NewServer(http.RedirectHandler(url+"/b", status))
			t.Cleanup(s.Close)
			r := newRig(t, straight, nil)
			if _, err := r.get(t.Context(), s.URL+"/a", Options{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCookiesOfAChain: a server gets the cookies back that it set before in the same chain of redirects.
func TestCookiesOfAChain(t *testing.T) {
	o := origintest.Object{Size: mid}
	elsewhere := &redirector{object: serveObject(o)}
	other := httptest.NewServer(elsewhere)
	t.Cleanup(other.Close)
	object := serveObject(o)
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		c, err := q.Cookie("k")
		switch {
		case q.URL.Path == "/away":
			http.SetCookie(w, &http.Cookie{Name: "k", Value: "1", Path: "/"})
			http.Redirect(w, q, other.URL+"/b", http.StatusFound)
		case err == nil && c.Value == "1":
			object.ServeHTTP(w, q)
		default:
			http.SetCookie(w, &http.Cookie{Name: "k", Value: "1", Path: "/"})
			http.Redirect(w, q, q.URL.Path, http.StatusFound)
		}
	}))
	t.Cleanup(here.Close)
	t.Run("R238 the same origin", func(t *testing.T) {
		r := newRig(t, straight, nil)
		res, err := r.get(t.Context(), here.URL+"/a", Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.isObject("a", o)
		r.bothCarried(res)
	})
	t.Run("R238 another origin", func(t *testing.T) { // ports count, unlike for browsers
		r := newRig(t, straight, nil)
		if _, err := r.get(t.Context(), here.URL+"/away", Options{}); err != nil {
			t.Fatal(err)
		}
		for _, q := range elsewhere.requests() {
			if len(q.Cookies()) > 0 {
				t.Errorf("%v", q.Header)
			}
		}
	})
}

// guided is a Transport that says where names lead, and records those that are kept out.
type guided struct {
	http.RoundTripper
	inward string
	out    map[string]bool
	kept   int
}

func (g *guided) Inward(host string) bool { return host == g.inward }

func (g *guided) KeepOut(host string) (release func()) {
	g.out[host], g.kept = true, g.kept+1
	return func() { g.kept-- }
}

func (g *guided) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "rebind.example.com" {
		return nil, link.ErrRebound
	}
	return g.RoundTripper.RoundTrip(r)
}

func TestRedirectsInward(t *testing.T) {
	o := origintest.Object{Size: mid}
	h := &redirector{object: serveObject(o), to: map[string]string{}}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	at := strings.TrimPrefix(s.URL, "http://")
	for _, c := range []struct {
		name, first, to, inward string
		refused                 bool
	}{
		{"R240 from the internet to loopback", "http://files.example.com/a", s.URL + "/b", "", true},
		{"R240 from the internet to a local name", "http://files.example.com/a", "http://router/b", "", true},
		{"R240 from the internet to an address that is spelled oddly", "http://files.example.com/a", "http://127.1/b", "", true},
		{"R240 from the internet to metadata", "http://files.example.com/a", "http://169.254.169.254/b", "", true},
		{"R240 from the internet to a name that leads inwards", "http://files.example.com/a", "http://rebind.example.com/b", "", true},
		{"R240 from the internet to the internet", "http://files.example.com/a", "http://cdn.example.com/b", "", false},
		{"R240 to itself", "http://files.example.com/a", "/b", "", false},
		{"R240 from a local name", "http://nas/a", s.URL + "/b", "", false},
		{"R240 from a private address", s.URL + "/a", "http://router/b", "", false},
		{"R240 from a name that leads to a private network", "http://files.corp.example/a", "http://10.1.2.3/b", "files.corp.example", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.mu.Lock()
			h.to["/a"], h.seen = c.to, nil
			h.mu.Unlock()
			r := newRig(t, func(link.Link, string) string { return at }, nil)
			g := &guided{r.transport, c.inward, map[string]bool{}, 0}
			r.transport = g
			_, err := r.get(t.Context(), c.first, Options{})
			if g.kept != 0 {
				t.Errorf("%d names are kept out after the download", g.kept)
			}
			if !c.refused {
				if err != nil {
					t.Fatal(err)
				}
				r.isObject("a", o)
				if want := c.to == "http://cdn.example.com/b"; g.out["cdn.example.com"] != want {
					t.Errorf("kept out: %v", g.out)
				}
				return
			}
			r.fails(err, Server, "the local network")
			if n := len(h.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
