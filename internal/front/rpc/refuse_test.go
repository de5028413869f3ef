package rpc

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tributary-http/tributary/internal/front/admission"
)

const (
	extension = "chrome-extension://mpkodccbngfoacfalldjimigbofkhgjn"
	listed    = "https://front.example"
)

// try sends a request with these header fields ("Host" is the request's) and returns the response.
func (c *caller) try(method, text string, fields ...string) (status int, header http.Header, body string) {
	c.t.Helper()
	at := c.url
	if method == http.MethodGet {
		at, text = c.url+"?"+text, ""
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, at, strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// TestCallers: only programs with the token, extensions and listed pages may call.
func TestCallers(t *testing.T) {
	s := start(t, func(c *Config) { c.Origins = []string{listed} })
	u, _ := url.Parse(s.url)
	port := u.Port()
	stat := request(t, "aria2.getGlobalStat")
	params := base64.StdEncoding.EncodeToString([]byte(`["token:` + secret + `"]`))
	get := url.Values{"method": {"aria2.getGlobalStat"}, "id": {"1"}, "params": {params}}.Encode()
	for _, c := range []struct {
		name, method, text string
		fields             []string
		want               int
	}{
		{"a program", "POST", stat, nil, 200},
		{"by another name of this machine", "POST", stat, []string{"Host: localhost:" + port}, 200},
		{"by the name for our extension", "POST", stat, []string{"Host: tributary.localhost:" + port}, 200},
		{"an extension", "POST", stat, []string{"Origin: " + extension, "Sec-Fetch-Site: none"}, 200},
		{"one of Firefox", "POST", stat, []string{"Origin: moz-extension://8d5c9d0a-8f3f-4d6e-9a5c-0a1b2c3d4e5f"}, 200},
		{"a listed page", "POST", stat, []string{"Origin: " + listed, "Sec-Fetch-Site: cross-site"}, 200},
		{"a GET", "GET", get, nil, 200},
		{"a batch by GET", "GET", "params=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("["+stat+"]"))), nil, 200},
		{"an address that somebody types", "GET", get, []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"}, 200},

		{"a page", "POST", stat, []string{"Origin: https://evil.example"}, 403},
		{"a page of this machine", "POST", stat, []string{"Origin: http://127.0.0.1:8000"}, 403},
		{"a page of this very address", "POST", stat, []string{"Origin: http://127.0.0.1:" + port}, 403},
		{"a page in a file or a sandbox", "POST", stat, []string{"Origin: null"}, 403},
		{"a page that names a listed one, too", "POST", stat, []string{"Origin: " + listed, "Origin: https://evil.example"}, 403},
		{"a page whose name begins like a listed one", "POST", stat, []string{"Origin: " + listed + ".evil.example"}, 403},
		{"a page with the scheme of an extension and no host", "POST", stat, []string{"Origin: chrome-extension:"}, 403},
		{"an image, script or frame in a page", "GET", get, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"the same, of this machine", "GET", get, []string{"Sec-Fetch-Site: same-site"}, 403},
		{"JSONP", "GET", get + "&jsoncallback=f", nil, 400},
		{"a name below localhost", "POST", stat, []string{"Host: evil.localhost:" + port}, 403},
		{"DNS rebinding", "POST", stat, []string{"Host: evil.example:" + port}, 403},
		{"DNS rebinding, with the origin to it", "POST", stat, []string{"Host: evil.example:" + port, "Origin: http://evil.example:" + port}, 403},
		{"an extension by a foreign name", "POST", stat, []string{"Host: evil.example", "Origin: " + extension}, 403},
		{"another port", "POST", stat, []string{"Host: 127.0.0.1:1"}, 403},
		{"another method", "PUT", stat, nil, 405},
		{"a preflight of a page", "OPTIONS", "", []string{"Origin: https://evil.example", "Access-Control-Request-Method: POST"}, 403},
		{"too much", "POST", strings.Repeat(" ", maxRequest) + stat, nil, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, body := (&caller{t, s.url}).try(c.method, c.text, c.fields...)
			if status != c.want || strings.Contains(body, "numActive") != (status == 200) {
				t.Errorf("%d %s, want %d", status, body, c.want)
			}
			if allowed := header.Get("Access-Control-Allow-Origin"); status == 403 && allowed != "" || allowed == "*" {
				t.Errorf("allowed for %q", allowed)
			}
			if header.Get("X-Frame-Options") != "DENY" || header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%v", header)
			}
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		if status, _, _ := (&caller{t, strings.Replace(s.url, path, "/rpc", 1)}).try("POST", stat); status != 404 {
			t.Error(status)
		}
	})
	t.Run("the preflight of an extension", func(t *testing.T) {
		status, h, _ := (&caller{t, s.url}).try("OPTIONS", "", "Origin: "+extension, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: content-type", "Access-Control-Request-Private-Network: true")
		got := map[string]string{}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				got[name] = h.Get(name)
			}
		}
		want := map[string]string{
			"Access-Control-Allow-Origin": extension, "Access-Control-Allow-Methods": "POST, GET", "Access-Control-Allow-Headers": "Content-Type",
			"Access-Control-Max-Age": "600", "Access-Control-Allow-Private-Network": "true",
		}
		if status != 204 || !reflect.DeepEqual(got, want) {
			t.Errorf("%d %v", status, got)
		}
	})
	t.Run("sockets", func(t *testing.T) {
		for origin, want := range map[string]int{"": 101, extension: 101, listed: 101, "https://evil.example": 403, "null": 403} {
			o := &websocket.DialOptions{HTTPHeader: http.Header{}}
			if origin != "" {
				o.HTTPHeader.Set("Origin", origin)
			}
			c, resp, err := websocket.Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1), o)
			if resp == nil || resp.StatusCode != want {
				t.Errorf("%s: %v %v", origin, resp, err)
			}
			if err == nil {
				_ = c.CloseNow()
			}
		}
	})
}

// TestToken: nothing works without the token.
func TestToken(t *testing.T) {
	s := start(t, nil)
	methods := []string{"nosuch", "system.nosuch"}
	for name := range documented {
		if !strings.HasPrefix(name, "system.") {
			methods = append(methods, name)
		}
	}
	unauthorized := map[string]any{"code": 1.0, "message": "Unauthorized"}
	for _, token := range []string{"", "token:", "token:" + secret[1:], "token:" + secret + "0", secret} {
		for _, name := range methods {
			_, answer := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[%q]}`, name, token))
			if m, _ := answer.(map[string]any); m["result"] != nil || !reflect.DeepEqual(m["error"], unauthorized) {
				t.Errorf("%s with %q: %v", name, token, answer)
			}
		}
	}
	_, answer := s.post(`{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":["token:` + secret + `",[{"methodName":"aria2.getGlobalStat","params":["token:x"]}]]}`)
	if got := answer.(map[string]any)["result"]; !reflect.DeepEqual(got, []any{unauthorized}) {
		t.Errorf("the token of a multicall does not hold for its calls: %v", got)
	}
	t.Run("who has not shown it hears nothing", func(t *testing.T) {
		deaf, hears := s.socket(), s.socket()
		deaf.send(`{"jsonrpc":"2.0","id":"x","method":"aria2.getVersion","params":["token:wrong"]}`)
		if m := deaf.read(); !reflect.DeepEqual(m["error"], unauthorized) {
			t.Error(m)
		}
		hears.send(request(t, "aria2.getVersion"))
		hears.read()
		o := origin(t)
		gid := s.call("aria2.addUri", []string{o.URL + "/file"})
		for _, want := range []string{"aria2.onDownloadStart", "aria2.onDownloadComplete"} {
			if m := hears.read(); m["method"] != want || fmt.Sprint(m["params"]) != fmt.Sprintf("[map[gid:%s]]", gid) {
				t.Error(m)
			}
		}
		deaf.send(`{"jsonrpc":"2.0","id":"y","method":"system.listNotifications"}`)
		if m := deaf.read(); m["id"] != "y" {
			t.Errorf("it heard %v", m)
		}
	})
}

// TestOtherUsers: connections of other users are refused, and so are those whose user is unknown.
func TestOtherUsers(t *testing.T) {
	for name, owner := range map[string]admission.Owner{
		"another": func(netip.AddrPort, netip.AddrPort) (uint32, error) { return uint32(os.Getuid()) + 1, nil },
		"unknown": func(netip.AddrPort, netip.AddrPort) (uint32, error) { return 0, admission.ErrUnknown },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(c *Config) { c.Owner = owner })
			if status, _, body := s.try("POST", request(t, "aria2.getVersion")); status != 403 || strings.Contains(body, "version") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "rpc-token")
	token, err := Token(t.Context(), file)
	if err != nil || len(token) != 40 {
		t.Fatalf("%q %v", token, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if again, err := Token(context.Background(), file); again != token || err != nil {
		t.Errorf("%q %v", again, err)
	}
	for _, bad := range []string{"", "\n", "short\n", strings.Repeat("x", 20) + " y\n"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Token(t.Context(), file); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 40)+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Token(t.Context(), file); err == nil {
		t.Error("others may write to it")
	}
}
