package gateway

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestObject(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{
		"files.example:443":  func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.RequestURI)) },
		"mirror.example:844": says("another port"),
		"[2606:4700::1]:443": says("an address"),
	}}
	addr := serve(t, w, "Files.example", "mirror.example:844", "[2606:4700::1]")
	for path, want := range map[string]string{
		"/https/files.example/a/b?c=d":                "/a/b?c=d",
		"/https://files.example/a/b":                  "/a/b",
		"/https/FILES.example:443/a":                  "/a",
		"/https/files.example":                        "/",
		"/https/files.example/a//b/%2Fc":              "/a//b/%2Fc",
		"/https/files.example/./b":                    "/./b", // from apt, for flat repositories
		"/https/files.example/a?x=../..//":            "/a?x=../..//",
		"/https/files.example//a":                     "https://files.example//a", // in absolute-form, which has the same meaning
		"/https/mirror.example:844/x":                 "another port",
		"/https/[2606:4700::1]/x":                     "an address",
		"/brew/files.example/v2/x":                    "/v2/x",
		"/brew/files.example/https://files.example/y": "/y",
	} {
		resp, body := ask(t, addr, http.MethodGet, path)
		if resp.StatusCode != http.StatusOK || body != want {
			t.Errorf("%s: %s, %q, want %q", path, resp.Status, body, want)
		}
	}
	resp, _ := ask(t, addr, http.MethodHead, "/https/files.example/a")
	if resp.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %s", resp.Status)
	}
}

// TestPathTricks: paths that would make the gateway use another host than it seems, or one that the user did not list, are refused.
func TestPathTricks(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": says("x"), "evil.example:443": says("evil")}}
	addr := serve(t, w, "files.example")
	for path, want := range map[string]int{
		"/https/evil.example/x":                           403,
		"/https/files.example:8443/x":                     403, // another port
		"/https/files.example:/x":                         400,
		"/https/files.example:0443/x":                     400,
		"/https/files.example:99999/x":                    400,
		"/https/user@files.example/x":                     400,
		"/https/files.example@evil.example/x":             400,
		"/https/files.example%40evil.example/x":           400,
		"/https/evil.example%2ffiles.example/x":           400,
		"/https/files.example%00/x":                       400,
		"/https/files.example./x":                         400,
		"/https/.files.example/x":                         400,
		"/https/files.example#@evil.example/x":            400,
		"/https/files.example\\@evil.example/x":           400,
		"/https/files.example/..":                         400,
		"/https/files.example/../evil.example/x":          400,
		"/https/files.example/%2e%2e/evil.example/x":      400,
		"/https/files.example/%2E./evil.example/x":        400,
		"/https/files.example/a%2f..%2f../x":              400,
		"/https/files.example/a%5c..%5cx":                 400,
		"/https//files.example/x":                         400,
		"//https/files.example/x":                         403,
		"/https%2ffiles.example/x":                        404,
		"/HTTPS/files.example/x":                          404,
		"/http/files.example/x":                           404,
		"/http://files.example/x":                         404,
		"/https:/files.example/x":                         404,
		"/https:///files.example/x":                       400,
		"/https/":                                         400,
		"/https?files.example/x":                          404,
		"/https/?files.example/x":                         400,
		"/https/files.example?x":                          400,
		"/https/127.0.0.1/x":                              403,
		"/https/localhost/x":                              403,
		"/https/[::1]/x":                                  403,
		"/https/[fe80::1%25eth0]/x":                       400,
		"/https/::1/x":                                    400,
		"/brew/files.example/https://evil.example/x":      403,
		"/brew/evil.example/x":                            403,
		"/hf/evil.example/x":                              403,
		"/simple/evil.example/x":                          403,
		"/v2/evil.example/x/manifests/latest":             403,
		"/v2/x/manifests/latest?ns=evil.example":          403,
		"/v2/x/manifests/latest?ns=a@files.example":       400,
		"/v2/x/manifests/latest?ns=files.example&ns=evil": 400,
		"/v2/x/manifests/latest":                          403, // Docker's registry is not listed
		"/":                                               404,
		"/favicon.ico":                                    404,
		"http://files.example/x":                          403, // as sent to a proxy
		"https://files.example/x":                         403,
		"/https/127.1/x":                                  400,
		"/https/2130706433/x":                             400,
	} {
		resp, body := ask(t, addr, http.MethodGet, path)
		if resp.StatusCode != want || !strings.HasPrefix(body, "Tributary (gateway): ") {
			t.Errorf("%s: %s, %q, want %d", path, resp.Status, body, want)
		}
	}
	if asked := w.asked(); len(asked) > 0 {
		t.Errorf("it asked for %q", asked)
	}
}

// TestBrowsers: a page in a browser gets nothing, neither by a name that temporarily leads here, nor from another site, nor opened
// in a tab.
func TestBrowsers(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": says("<script>alert(1)</script>")}}
	addr := serve(t, w, "files.example")
	_, port, _ := strings.Cut(addr, ":")
	for _, c := range []struct {
		field string
		want  int
	}{
		{"Host: " + addr, 200},
		{"Host: localhost:" + port, 200},
		{"Host: LOCALHOST:" + port, 200},
		{"Host: [::1]:" + port, 200},
		{"Host: evil.example", 403},
		{"Host: evil.example:" + port, 403},
		{"Host: localhost.evil.example:" + port, 403},
		{"Host: localhost", 403},
		{"Host: 127.0.0.1", 403},
		{"Host: 127.0.0.1:1", 403},
		{"Host: 127.0.0.2:" + port, 403},
		{"Origin: https://evil.example", 403},
		{"Origin: null", 403},
		{"Origin: http://" + addr, 403},
		{"Sec-Fetch-Site: cross-site", 403},
		{"Sec-Fetch-Site: same-site", 403},
		{"Sec-Fetch-Site: same-origin", 403}, // from another server's page at this address
		{"Sec-Fetch-Site: none", 403},
		{"Sec-Fetch-Mode: no-cors", 403},
		{"Sec-WebSocket-Key: x", 403},
		{"Service-Worker: script", 403},
		{"Upgrade-Insecure-Requests: 1", 403},
		{"Access-Control-Request-Method: GET", 403},
	} {
		resp, _ := ask(t, addr, http.MethodGet, "/https/files.example/", c.field)
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.field, resp.Status, c.want)
		}
	}
	if n := len(w.asked()); n != 4 {
		t.Errorf("%d requests went on, want 4", n)
	}
}

// TestAnswersAreHarmless: however a browser interprets an answer, the answer can do nothing.
func TestAnswersAreHarmless(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range []string{
			"Set-Cookie: a=b", "Access-Control-Allow-Origin: *", "Access-Control-Allow-Credentials: true", "Refresh: 0; url=/x", "Location: /x",
			"Strict-Transport-Security: max-age=1", `Alt-Svc: h3=":443"`, "Clear-Site-Data: *", "Service-Worker-Allowed: /", "Connection: X-Hop",
			"X-Hop: 1", "Content-Security-Policy: default-src *", "Content-Security-Policy-Report-Only: x",
		} {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		w.Header().Set("Etag", `"v1"`)
		_, _ = w.Write([]byte("<html>"))
	}}}
	addr := serve(t, w, "files.example")
	resp, body := ask(t, addr, http.MethodGet, "/https/files.example/")
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Etag": `"v1"`,
		"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
	} {
		if got := resp.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", name, got)
		}
		resp.Header.Del(name)
	}
	resp.Header.Del("Content-Length")
	resp.Header.Del("Date")
	resp.Header.Del("Connection")
	resp.Header.Del("Content-Type")
	if len(resp.Header) > 0 || body != "<html>" {
		t.Errorf("also %v, %q", resp.Header, body)
	}
}

func TestMethods(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": says("x")}}
	addr := serve(t, w, "files.example")
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
		path := "/https/files.example/"
		if resp, _ := ask(t, addr, method, path); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s", method, resp.Status)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/https/files.example/", strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("content: %s", resp.Status)
	}
	if resp, _ := ask(t, addr, http.MethodGet, "/https/files.example/", "Authorization: Negotiate abc"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("credentials of a connection: %s", resp.Status)
	}
	if asked := w.asked(); len(asked) > 0 {
		t.Errorf("it asked for %q", asked)
	}
}

// TestUsers: other users of the machine can reach loopback, too.
func TestUsers(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": says("x")}}
	for owner, want := range map[uint32]int{1000: 200, 1001: 403} {
		addr := serveUsers(t, w, func(_, _ netip.AddrPort) (uint32, error) { return owner, nil }, []uint32{0, 1000}, "files.example")
		if resp, _ := ask(t, addr, http.MethodGet, "/https/files.example/"); resp.StatusCode != want {
			t.Errorf("R185 user %d: %s", owner, resp.Status)
		}
	}
}

func TestRequestFields(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": says("x")}}
	addr := serve(t, w, "files.example")
	ask(t, addr, http.MethodGet, "/https/files.example/",
		"Accept: a", "Accept: b", "Range: bytes=1-", "Authorization: Bearer t", "X-Custom: y",
		"Cookie: session=1", "Referer: http://127.0.0.1/", "Forwarded: for=1", "X-Forwarded-For: 1", "Via: x", "Te: trailers",
		"Connection: X-Hop, keep-alive", "X-Hop: 1", "Keep-Alive: 5", "Proxy-Authorization: Basic x", "Upgrade: h2c", "Http2-Settings: x")
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) != 1 {
		t.Fatalf("%d requests", len(w.seen))
	}
	h := w.seen[0].Header
	var names []string
	for name, values := range h {
		if len(values) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if want := []string{"Accept", "Authorization", "Range", "User-Agent", "X-Custom"}; !slices.Equal(names, want) || len(h["Accept"]) != 2 {
		t.Errorf("%v", h)
	}
	if host := w.seen[0].Host; host != "files.example" {
		t.Errorf("Host: %s", host)
	}
}

func TestRedirects(t *testing.T) {
	for to, want := range map[string]int{
		"https://cdn.example/x?sig=%2F":       200,
		"/elsewhere":                          200,
		"//cdn.example/x":                     200,
		"x":                                   200,
		"https://listed.internal/x":           200, // the user listed it
		"https://listed.example:8443/x":       200,
		"http://cdn.example/x":                502,
		"http://files.example/x":              502,
		"ftp://cdn.example/x":                 502,
		"file:///etc/passwd":                  502,
		"javascript:alert(1)":                 502,
		"":                                    502,
		"https://":                            502,
		"https://cdn.example:8443/x":          502,
		"https://user:secret@cdn.example/x":   502,
		"https://127.0.0.1/x":                 502,
		"https://127.1/x":                     502, // a name that some programs read as loopback
		"https://0x7f.1/x":                    502,
		"https://2130706433/x":                502,
		"https://localhost/x":                 502,
		"https://a.localhost/x":               502,
		"https://router.lan/x":                502,
		"https://router/x":                    502,
		"https://192.168.1.1/x":               502,
		"https://10.0.0.1/x":                  502,
		"https://100.64.0.1/x":                502,
		"https://169.254.169.254/latest/meta": 502,
		"https://[::1]/x":                     502,
		"https://[fd00::1]/x":                 502,
		"https://[::ffff:127.0.0.1]/x":        502,
		"https://[64:ff9b::7f00:1]/x":         502,
		"https://[2002:7f00:1::]/x":           502,
		"https://cdn.example/%2e%2e/x":        502,
		"https://cdn.example/x?a=b c\xc3\xa9": 200,
		"https://cdn.example/a b":             200, // a space is escaped
	} {
		w := &world{servers: map[string]http.HandlerFunc{
			"cdn.example:443": says("x"), "listed.internal:443": says("x"), "listed.example:8443": says("x"),
			"files.example:443": func(w http.ResponseWriter, r *http.Request) {
				if r.RequestURI == "/first" {
					sends(to)(w, r)
				} else {
					says("x")(w, r)
				}
			},
		}}
		addr := serve(t, w, "files.example", "listed.internal", "listed.example:8443")
		resp, body := ask(t, addr, http.MethodGet, "/https/files.example/first")
		if asked := w.asked(); resp.StatusCode != want || want == 200 && body != "x" || want != 200 && len(asked) != 1 {
			t.Errorf("%q: %s, %q, asked for %q", to, resp.Status, body, asked)
		}
		if v := resp.Header.Get("Location"); v != "" {
			t.Errorf("%q: the client is sent to %q", to, v)
		}
	}
	w := &world{servers: map[string]http.HandlerFunc{"files.example:443": sends("/again")}}
	addr := serve(t, w, "files.example")
	if resp, _ := ask(t, addr, http.MethodGet, "/https/files.example/"); resp.StatusCode != http.StatusBadGateway || len(w.asked()) != maxRedirects+1 {
		t.Errorf("endless: %s after %d requests", resp.Status, len(w.asked()))
	}
}

// TestCredentialsAreDropped: credentials, and fields that may contain some, go only to the host that the client named, and are not
// sent again if a redirect leads back to it.
func TestCredentialsAreDropped(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{
		"files.example:443": func(w http.ResponseWriter, r *http.Request) {
			if r.RequestURI == "/first" {
				sends("/second")(w, r)
			} else if r.RequestURI == "/second" {
				sends("https://cdn.example/x")(w, r)
			} else {
				says("x")(w, r)
			}
		},
		"cdn.example:443": sends("https://files.example/back"),
	}}
	addr := serve(t, w, "files.example")
	resp, _ := ask(t, addr, http.MethodGet, "/https/files.example/first", "Authorization: Bearer secret", "X-Amz-Security-Token: secret",
		"Private-Token: secret", "Range: bytes=0-", "Accept: */*")
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.seen {
		secrets := 0
		for _, name := range []string{"Authorization", "X-Amz-Security-Token", "Private-Token"} {
			if r.Header.Get(name) != "" {
				secrets++
			}
		}
		if want := map[bool]int{true: 3, false: 0}[i < 2]; secrets != want {
			t.Errorf("request %d to %s: %d secrets", i, r.URL.Host, secrets)
		}
		if r.Header.Get("Range") == "" || r.Header.Get("Accept") == "" {
			t.Errorf("request %d: %v", i, r.Header)
		}
	}
}

// TestClientsThatSendNoMore: a path keeps its bytes, and a client that sends no more gets the whole answer.
func TestClientsThatSendNoMore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	w := &world{servers: map[string]http.HandlerFunc{
		"files.example:443": func(w http.ResponseWriter, r *http.Request) { says(r.RequestURI+strings.Repeat("x", 1<<20))(w, r) },
	}}
	t.Run("R241 and a bare percent sign, R239", func(t *testing.T) {
		nc, err := net.Dial("tcp", serve(t, w, "files.example"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := io.WriteString(nc, "GET /https/files.example/100% HTTP/1.1\r\nHost: "+nc.RemoteAddr().String()+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(nc)
		if err != nil || len(b) < 1<<20 || !strings.Contains(string(b), "\n/100%xxx") {
			t.Errorf("%d bytes, %v: %.300q", len(b), err, b)
		}
	})
}
