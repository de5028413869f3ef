package rpc

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
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
	return s, p
}

// ask calls a method without the token for a page or extension.
func (s *server) ask(origin, method string, params ...any) (result any, failed string) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	fields := []string{"Origin: " + origin}
	if origin == "" {
		fields = nil
	}
	status, _, body := s.try(http.MethodPost, string(text), fields...)
	var got struct {
		Result any
		Error  struct{ Message string }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		return nil, http.StatusText(status)
	}
	return got.Result, got.Error.Message
}

// code returns a new code.
func (s *server) code() string {
	s.t.Helper()
	code, err := s.server.NewCode()
	if err != nil || len(code) != codeLetter {
		s.t.Fatal(code, err)
	}
	return code
}

// show sends a code to the server, and returns the token if the code is accepted.
func (s *server) show(code, origin string) (token string) {
	s.t.Helper()
	result, _ := s.ask(origin, "tributary.pair", code)
	m, _ := result.(map[string]any)
	token, _ = m["token"].(string)
	return token
}

// proves reports whether the server proves to an extension that it knows a secret.
func (s *server) proves(secret, origin string) bool {
	s.t.Helper()
	nonce := rand.Text()
	result, _ := s.ask(origin, "tributary.prove", nonce)
	proofs, _ := result.([]any)
	return slices.Contains(proofs, any(proof(hash(secret), nonce)))
}

// other is another extension.
const other = "moz-extension://0a0b0c0d-0000-0000-0000-000000000001"

// TestPairing: an extension that knows the code gets a token that works only for that extension, until the pairing ends.
func TestPairing(t *testing.T) {
	s, p := pairing(t)
	code := s.code()
	token := s.show(code, extension)
	if !tokenForm.MatchString(token) {
		t.Fatalf("%q", token)
	}
	if s.show(code, other) != "" {
		t.Error("the code works a second time")
	}
	call := func(token, origin string) string {
		t.Helper()
		_, failed := s.ask(origin, "aria2.getVersion", "token:"+token)
		return failed
	}
	for _, c := range []struct{ what, token, origin, want string }{
		{"the extension", token, extension, ""},
		{"another extension with its token", token, other, "Unauthorized"},
		{"a program with its token", token, "", "Unauthorized"},
		{"a page with its token", token, "https://evil.example", "Forbidden"},
		{"the extension with the token of all", secret, extension, ""},
		{"the extension with another token", token[1:] + "0", extension, "Unauthorized"},
	} {
		if got := call(c.token, c.origin); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	text, err := os.ReadFile(p.Path)
	if err != nil || strings.Contains(string(text), token) || strings.Contains(string(text), code) {
		t.Errorf("the file: %s %v", text, err)
	}
	if i, err := os.Stat(p.Path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", i.Mode(), err)
	}
	second := s.show(s.code(), extension)
	if call(token, extension) == "" || call(second, extension) != "" {
		t.Error("a second pairing does not replace the first")
	}
	if err := p.Remove(t.Context(), extension); err != nil || call(second, extension) == "" {
		t.Errorf("a pairing that has ended still serves: %v", err)
	}
}

// TestProof: the server proves that it knows the secret of an extension, to that extension and before it has shown anything.
func TestProof(t *testing.T) {
	t.Run("R222 the server shows that it knows the secret", testProof)
}

func testProof(t *testing.T) {
	s, p := pairing(t)
	if s.proves(secret, extension) || s.proves("", extension) {
		t.Error("R222 there is no pairing yet, and the general token is not a secret of extensions")
	}
	code := s.code()
	if !s.proves(code, extension) || s.proves(code[1:]+"A", extension) || s.proves(code, "") {
		t.Error("R222 the code")
	}
	token := s.show(code, extension)
	if s.proves(code, extension) {
		t.Error("R222 the code was used")
	}
	if !s.proves(token, extension) || s.proves(token, other) || s.proves(token, "") {
		t.Error("R222 the token")
	}
	for _, nonce := range []any{"short", strings.Repeat("x", 129), 5} {
		if _, failed := s.ask(extension, "tributary.prove", nonce); failed == "" {
			t.Errorf("%v is a nonce", nonce)
		}
	}
	if err := p.Remove(t.Context(), extension); err != nil || s.proves(token, extension) {
		t.Errorf("R222 the pairing has ended: %v", err)
	}
}

// TestPairingRefused: nothing but the terminal shows a code, and only an extension can use it.
func TestPairingRefused(t *testing.T) {
	t.Run("R223 a code", testPairingRefused)
}

func testPairingRefused(t *testing.T) {
	s, p := pairing(t)
	code := s.code()
	for _, at := range []string{"/pair", "/", "/jsonrpc"} {
		for _, fields := range [][]string{nil, {"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}} {
			page := &caller{t, strings.TrimSuffix(s.url, path) + at}
			if _, _, body := page.try(http.MethodGet, "", fields...); strings.Contains(body, code[:5]) {
				t.Errorf("R223 %s shows %s", at, body)
			}
		}
	}
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:6800", "chrome-extension://", ""} {
		if token := s.show(code, origin); token != "" {
			t.Errorf("R223 %q is paired", origin)
		}
	}
	for _, wrong := range []string{"", "00000000", code[1:], code + "A"} {
		if s.show(wrong, extension) != "" {
			t.Errorf("R223 %q is a code", wrong)
		}
	}
	if all, err := p.All(); err != nil || len(all) > 0 {
		t.Errorf("%v %v", all, err)
	}
	unknown := start(t, func(c *Config) { c.Pairings = p })
	if _, err := unknown.server.NewCode(); err == nil {
		t.Error("R223 a code where users are not told apart")
	}
}

// TestCodeExpires: a code is valid for five minutes.
func TestCodeExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c codes
		for after, want := range map[time.Duration]bool{codeTime: true, codeTime + time.Second: false} {
			code := c.fresh(time.Now())
			time.Sleep(after)
			if (c.valid(time.Now()) == code) != want || c.use(code, time.Now()) != want {
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
