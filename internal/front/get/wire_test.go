package get

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// heads returns the request heads that a server received, each with HOST in place of its address.
func heads(s *origintest.Server) []string {
	var all []string
	for _, q := range s.Requests() {
		all = append(all, strings.ReplaceAll(q.Raw, s.Addr(0), "HOST"))
	}
	return all
}

// TestRequests: a server sees only the fields that the user gave and those that a divided download needs; net/http adds none.
func TestRequests(t *testing.T) {
	const size = threshold / 2 // one request is enough
	for _, tt := range []struct {
		name, path string
		lines      []string // of --header
		agent      string
		want       []string
	}{
		{"nothing but what is needed", "/object", []string{"Accept:", "Accept-Encoding:"}, "", []string{"GET /object HTTP/1.1", "Host: HOST"}},
		{
			"the fields of the program", "/object", nil, "tributary/9",
			[]string{"GET /object HTTP/1.1", "Host: HOST", "Accept: */*", "Accept-Encoding: identity", "User-Agent: tributary/9"},
		},
		{
			"fields of the user", "/object",
			[]string{"User-Agent:", "Referer: http://mine.example/", "Accept: a", "Accept: b", "X-A: c"},
			"tributary/9",
			[]string{
				"GET /object HTTP/1.1", "Host: HOST", "Accept: a", "Accept: b", "Accept-Encoding: identity", "Referer: http://mine.example/", "X-A: c",
			},
		},
		{
			"path and query", "//a/../c d/ü?q=%zz?ü b&#f",
			[]string{"Accept:", "Accept-Encoding:"},
			"",
			[]string{"GET //a/../c%20d/%C3%BC?q=%zz?%C3%BC%20b& HTTP/1.1", "Host: HOST"},
		},
		{"escapes", "/a%2fb%7E?%41", []string{"Accept:", "Accept-Encoding:"}, "", []string{"GET /a%2fb%7E?%41 HTTP/1.1", "Host: HOST"}},
		{"an empty query", "/?", []string{"Accept:", "Accept-Encoding:"}, "", []string{"GET /? HTTP/1.1", "Host: HOST"}},
		{
			"a password", "@/object",
			[]string{"Accept:", "Accept-Encoding:"},
			"",
			[]string{"GET /object HTTP/1.1", "Host: HOST", "Authorization: Basic dTpw"},
		},
		{
			"credentials of a scheme that is not known", "/object",
			[]string{"Accept:", "Authorization: Custom key"},
			"",
			[]string{"GET /object HTTP/1.1", "Host: HOST", "Accept-Encoding: identity", "Authorization: Custom key"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: size})
			r := newRig(t, toNodes(s), nil)
			h, err := Fields(tt.lines, tt.agent)
			if err != nil {
				t.Fatal(err)
			}
			url := "http://" + s.Addr(0) + tt.path
			if path, ok := strings.CutPrefix(tt.path, "@"); ok {
				url = "http://u:p@" + s.Addr(0) + path
			}
			if _, err := r.get(t.Context(), url, Options{Header: h, Output: "object"}); err != nil {
				t.Fatal(err)
			}
			r.isObject("object", s.Object())
			if got, want := heads(s), strings.Join(tt.want, "\r\n")+"\r\n"+firstRange(tt.want[0]); len(got) != 1 || got[0] != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	t.Run("without an agent, anything that net/http carries", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: size})
		r := newRig(t, toNodes(s), nil)
		r.transport = &http.Transport{DisableCompression: true, DisableKeepAlives: true}
		if _, err := r.get(t.Context(), s.URL(), Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
		if got := heads(s); len(got) != 1 || got[0] != "GET /object HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n" {
			t.Errorf("%q", got)
		}
	})
}

// TestRedirectedRequests: the target of a redirect sees neither the URL that led there nor fields that are meant for another
// origin.
func TestRedirectedRequests(t *testing.T) {
	const size = threshold / 2
	object := origintest.New(t, origintest.Object{Size: size})
	other := origintest.New(t, origintest.Object{}, origintest.Redirect("http://"+object.Addr(0)+"/object?x=ü"))
	first := origintest.New(t, origintest.Object{}, origintest.If(func(q *origintest.Request) bool { return q.Nth == 1 && q.Target == "/a" },
		origintest.Redirect("b#f")), origintest.If(func(q *origintest.Request) bool { return q.Target == "/b" }, origintest.Redirect(other.URL())))
	r := newRig(t, straight, nil)
	h, err := Fields([]string{"Cookie: c", "Referer: http://mine.example/", "Accept-Language: de"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.get(t.Context(), "http://u:p@"+first.Addr(0)+"/a", Options{Header: h, Output: "object"}); err != nil {
		t.Fatal(err)
	}
	r.isObject("object", object.Object())
	const secret = "Authorization: Basic dTpw\r\nCookie: c\r\nReferer: http://mine.example/\r\n"
	const rest = " HTTP/1.1\r\nHost: HOST\r\nAccept: */*\r\nAccept-Encoding: identity\r\nAccept-Language: de\r\n"
	for i, tt := range []struct {
		server *origintest.Server
		want   []string
	}{
		{first, []string{"GET /a" + rest + secret, "GET /b" + rest + secret}},
		{other, []string{"GET /object" + rest}},
		{object, []string{"GET /object?x=%C3%BC" + rest}},
	} {
		got := heads(tt.server)
		if len(got) != len(tt.want) {
			t.Errorf("%d: %q", i, got)
			continue
		}
		for k, want := range tt.want {
			if want += firstRange(want); got[k] != want {
				t.Errorf("%q, want %q", got[k], want)
			}
		}
	}
}

// firstRange returns the Range field and the end of a first request's head.
func firstRange(head string) string {
	if line, _, _ := strings.Cut(head, "\r\n"); strings.Contains(line, "?") {
		return "Range: bytes=0-\r\n\r\n"
	}
	return "Range: bytes=0-65535\r\n\r\n"
}
