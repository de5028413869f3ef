package rpc

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pairing starts a Server whose extensions can be paired.
func pairing(t *testing.T) (s *server, p Pairings) {
	p = Pairings{filepath.Join(t.TempDir(), "paired.json")}
	s = start(t, func(c *Config) {
		c.Pairings = p
		c.Owner = func(netip.AddrPort, netip.AddrPort) (uint32, error) { return uint32(os.Getuid()), nil }
	})
	s.url = strings.TrimSuffix(s.url, path)
	return s, p
}

// at returns the caller of another path.
func (s *server) at(path string) *caller { return &caller{s.t, s.url + path} }

var codeForm = regexp.MustCompile(`<strong id="code">(\d{4}) (\d{4})</strong>`)

// code opens the page and returns its code.
func (s *server) code() string {
	s.t.Helper()
	status, h, body := s.at(pairPath).try(http.MethodGet, "", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
	m := codeForm.FindStringSubmatch(body)
	if status != http.StatusOK || m == nil || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("Cache-Control") != "no-store" {
		s.t.Fatalf("%d %v %s", status, h, body)
	}
	return m[1] + m[2]
}

// show sends a code to the server, and returns the token if the code is accepted.
func (s *server) show(code, origin string) (status int, token string) {
	s.t.Helper()
	status, _, body := s.at(pairPath).try(http.MethodPost, `{"code":"`+code+`"}`, "Origin: "+origin)
	var got struct{ Token string }
	_ = json.Unmarshal([]byte(body), &got) // fails if the code was refused
	return status, got.Token
}

// TestPairing: an extension that knows the code gets a token that works only for that extension, until the pairing ends.
func TestPairing(t *testing.T) {
	s, p := pairing(t)
	const other = "moz-extension://0a0b0c0d-0000-0000-0000-000000000001"
	code := s.code()
	status, token := s.show(code, extension)
	if status != http.StatusOK || !tokenForm.MatchString(token) {
		t.Fatalf("%d %q", status, token)
	}
	if status, _ := s.show(code, other); status != http.StatusForbidden {
		t.Errorf("the code a second time: %d", status)
	}
	call := func(token, origin string) int {
		t.Helper()
		fields := []string{"Origin: " + origin}
		if origin == "" {
			fields = nil
		}
		status, _, _ := s.at(path).try(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"aria2.getVersion","params":["token:`+token+`"]}`, fields...)
		return status
	}
	for _, c := range []struct {
		what, token, origin string
		want                int
	}{
		{"the extension", token, extension, 200},
		{"another extension with its token", token, other, 400},
		{"a program with its token", token, "", 400},
		{"a page with its token", token, "https://evil.example", 403},
		{"the extension with the token of all", secret, extension, 200},
		{"the extension with another token", token[1:] + "0", extension, 400},
	} {
		if got := call(c.token, c.origin); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	text, err := os.ReadFile(p.Path)
	if err != nil || strings.Contains(string(text), token) || strings.Contains(string(text), code) {
		t.Errorf("the file: %s %v", text, err)
	}
	if i, err := os.Stat(p.Path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", i.Mode(), err)
	}
	_, second := s.show(s.code(), extension)
	if call(token, extension) != 400 || call(second, extension) != 200 {
		t.Error("a second pairing does not replace the first")
	}
	if err := p.Remove(t.Context(), extension); err != nil || call(second, extension) != 400 {
		t.Errorf("a pairing that has ended still serves: %v", err)
	}
}

// TestPairingRefused: neither pages nor other users can read or use a code, and codes cannot be guessed.
func TestPairingRefused(t *testing.T) {
	s, p := pairing(t)
	for _, c := range []struct {
		what, method string
		fields       []string
	}{
		{"a link on another site", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}},
		{"a frame", "GET", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}},
		{"a script of the page itself", "GET", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"}},
		{"an extension that reads it", "GET", []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"}},
		{"an extension that names itself", "GET", []string{"Origin: " + extension}},
		{"a page", "GET", []string{"Origin: https://evil.example"}},
		{"a name that leads here", "GET", []string{"Host: evil.example"}},
	} {
		if status, _, body := s.at(pairPath).try(c.method, "", c.fields...); status != http.StatusForbidden || codeForm.MatchString(body) {
			t.Errorf("%s: %d %s", c.what, status, body)
		}
	}
	code := s.code()
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:6800", "chrome-extension://"} {
		if status, token := s.show(code, origin); status != http.StatusForbidden || token != "" {
			t.Errorf("%s: %d %q", origin, status, token)
		}
	}
	if status, _, _ := s.at(pairPath).try(http.MethodPost, `{"code":"`+code+`"}`); status != http.StatusForbidden {
		t.Errorf("a program: %d", status)
	}
	wrong := "00000000"
	if code == wrong {
		wrong = "00000001"
	}
	for range maxGuesses {
		if status, _ := s.show(wrong, extension); status != http.StatusForbidden {
			t.Errorf("a wrong code: %d", status)
		}
	}
	if status, _ := s.show(code, extension); status != http.StatusForbidden {
		t.Errorf("the code after %d wrong ones: %d", maxGuesses, status)
	}
	if all, err := p.All(); err != nil || len(all) > 0 {
		t.Errorf("%v %v", all, err)
	}
	unknown := start(t, func(c *Config) { c.Pairings = p })
	unknown.url = strings.TrimSuffix(unknown.url, path) + pairPath
	if status, _, _ := unknown.try(http.MethodGet, ""); status != http.StatusForbidden {
		t.Errorf("where users are not told apart: %d", status)
	}
}

// TestCodeExpires: a code is valid for five minutes.
func TestCodeExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c codes
		for after, want := range map[time.Duration]bool{codeTime: true, codeTime + time.Second: false} {
			code := c.fresh(time.Now())
			time.Sleep(after)
			if c.use(code, time.Now()) != want {
				t.Errorf("after %s: not %v", after, want)
			}
		}
	})
}

// TestOwnKey: the bytes of each link, and the type, are only sent on request.
func TestOwnKey(t *testing.T) {
	s, from := start(t, nil), origin(t)
	gid, _ := s.call("aria2.addUri", []string{from.URL + "/file"}, map[string]string{"out": "file.bin"}).(string)
	s.becomes(gid, "complete")
	d, _ := s.call("aria2.tellStatus", gid, []string{"tributary"}).(map[string]any)
	own, _ := d["tributary"].(map[string]any)
	if own == nil || own["type"] == "" || own["links"] == nil {
		t.Errorf("%v", d)
	}
	if d, _ := s.call("aria2.tellStatus", gid).(map[string]any); d["tributary"] != nil {
		t.Errorf("%v: not asked for", d)
	}
}
