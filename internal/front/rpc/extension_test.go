package rpc

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// browsed is what became of a scenario of testdata/browser.js.
type browsed struct {
	Canceled, Erased []int
	Failed           string
	Stored           struct{ Token string }
	Options          map[string]map[string]string // of the downloads that were handed over, by GID
}

// browse runs our extension in node, in a browser that only pretends to be one.
func browse(t *testing.T, port int, scenario map[string]any) (b browsed) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: apt-get install nodejs")
	}
	dir := t.TempDir()
	for name, from := range map[string]string{
		"daemon.js": "../../../extension", "background.js": "../../../extension", "browser.js": "testdata",
	} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	scenario["port"], scenario["origin"] = port, extension
	text, err := json.Marshal(scenario)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--experimental-websocket", "--no-warnings", "browser.js")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SCENARIO="+string(text))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if strings.Contains(said.String(), "bad option") || strings.Contains(said.String(), "Class extends value undefined") {
		t.Skip("this node has no WebSocket: it is older than 20.10")
	}
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, said.String())
	}
	return b
}

// saving is a download that a browser reports.
func saving(url string) map[string]any {
	return map[string]any{"url": url, "totalBytes": 3_000_000, "mime": "text/plain", "filename": "/home/x/file"}
}

// handTime is how long a scenario waits for a download to be handed over, in milliseconds. If it is, the wait is short.
const handTime = 60_000

// TestExtension: our extension is paired with the code, and hands a download over with the browser's own fields.
func TestExtension(t *testing.T) {
	s, _ := pairing(t)
	from := origin(t)
	paired := browse(t, s.port(), map[string]any{
		"code": s.code(), "wait": handTime, "settings": map[string]any{"least": 1000},
		"page": map[string]any{"item": saving(from.URL + "/file"), "headers": map[string]string{"Cookie": "a=b"}},
	})
	if len(paired.Stored.Token) != 40 || len(paired.Erased) != 1 || len(paired.Options) != 1 {
		t.Fatalf("%+v", paired)
	}
	for gid, o := range paired.Options {
		if o["header"] != "Cookie: a=b\n" || o[unmetered] != "true" {
			t.Errorf("%s: %v", gid, o)
		}
	}
	if wrong := browse(t, s.port(), map[string]any{"code": strings.Repeat("A", codeLetter), "wait": 0}); !strings.HasPrefix(wrong.Failed, "Stranger: ") {
		t.Errorf("a wrong code: %+v", wrong)
	}

	// From the menu, cookies go only to the server that the link names.
	elsewhere := strings.Replace(from.URL, "127.0.0.1", "localhost", 1)
	cookies := map[string]any{}
	for _, o := range []string{from.URL, elsewhere} {
		cookies[o] = []map[string]string{{"name": "lax", "value": "1", "sameSite": "lax"}, {"name": "strict", "value": "2", "sameSite": "strict"}}
	}
	for _, c := range []struct{ name, link, final, page, want string }{
		{"a link on a page of its own server", from.URL + "/file", "", from.URL + "/", "Cookie: lax=1; strict=2\n"},
		{"a link on another page", from.URL + "/file", "", "https://other.example/", "Cookie: lax=1\n"},
		{"a link that leads elsewhere", elsewhere + "/file", from.URL + "/file", from.URL + "/", ""},
	} {
		t.Run("R225 "+c.name, func(t *testing.T) {
			item := saving(c.link)
			if c.final != "" {
				item["finalUrl"] = c.final
			}
			got := browse(t, s.port(), map[string]any{
				"token": paired.Stored.Token, "cookies": cookies, "wait": handTime,
				"menu": map[string]any{"link": c.link, "page": c.page, "item": item},
			})
			if len(got.Options) != 1 {
				t.Fatalf("%+v", got)
			}
			for _, o := range got.Options {
				if o["header"] != c.want || o[unmetered] != "" {
					t.Errorf("R225 %v, want %q", o, c.want)
				}
			}
		})
	}
}

// port returns the server's port.
func (s *server) port() int {
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// thief listens instead of the daemon. It keeps everything that it receives, and says what the extension would like to hear.
type thief struct {
	mu  sync.Mutex
	got strings.Builder
}

func (f *thief) keep(text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got.Write(text)
}

func (f *thief) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got.String()
}

// ServeHTTP implements http.Handler.
func (f *thief) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.keep([]byte(r.Method + " " + r.URL.String() + "\n"))
	for name, values := range r.Header {
		f.keep(fmt.Appendf(nil, "%s: %s\n", name, values))
	}
	result := `{"status":"complete","totalLength":"3000000","token":"` + secret + `","tributary":{"type":"text/plain"}}`
	if r.Header.Get("Upgrade") == "" {
		text, _ := io.ReadAll(r.Body)
		f.keep(text)
		fmt.Fprintf(w, `{"id":1,"token":%q,"result":%s}`, secret, result)
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		_, text, err := c.Read(r.Context())
		if err != nil {
			return
		}
		f.keep(text)
		var q struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(text, &q)
		answer := result
		if q.Method == "tributary.prove" {
			answer = `["` + strings.Repeat("0", 64) + `"]`
		}
		if c.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer)) != nil {
			return
		}
	}
}

// TestTakenPort: who has taken the port learns nothing from our extension, and cannot make it drop a browser's download.
func TestTakenPort(t *testing.T) {
	t.Run("R222 another process on the port", testTakenPort)
}

func testTakenPort(t *testing.T) {
	f := &thief{}
	s := httptest.NewServer(f)
	defer s.Close()
	port := s.Listener.Addr().(*net.TCPAddr).Port
	const token, code = "0123456789012345678901234567890123456789", "ABCDEFGHIJKLMNOPQRST"
	item := saving("https://mail.example/secret.bin")
	got := browse(t, port, map[string]any{
		"token": token, "wait": 2000, "settings": map[string]any{"least": 1000},
		"page": map[string]any{"item": item, "headers": map[string]string{"Cookie": "session=SECRET", "Authorization": "Basic SECRET", "Referer": "https://mail.example/"}},
	})
	if len(got.Canceled) > 0 || len(got.Erased) > 0 || len(got.Options) > 0 {
		t.Errorf("R222 the browser's download is dropped: %+v", got)
	}
	menu := browse(t, port, map[string]any{
		"token": token, "wait": 2000, "cookies": map[string]any{"https://mail.example": []map[string]string{{"name": "session", "value": "SECRET"}}},
		"menu": map[string]any{"link": item["url"], "page": "https://mail.example/", "item": item},
	})
	if len(menu.Canceled) > 0 || len(menu.Erased) > 0 {
		t.Errorf("R222 the browser's download is dropped: %+v", menu)
	}
	paired := browse(t, port, map[string]any{"code": code, "wait": 0})
	if paired.Stored.Token != "" || !strings.HasPrefix(paired.Failed, "Stranger: ") {
		t.Errorf("R222 it is paired with a stranger: %+v", paired)
	}
	said := f.all()
	t.Logf("another process got %d bytes: %.400s", len(said), said)
	for _, secret := range []string{token, code, "SECRET", "mail.example", "addUri", "Cookie"} {
		if strings.Contains(said, secret) {
			t.Errorf("R222 it got %s", secret)
		}
	}
	if !strings.Contains(said, "tributary.prove") {
		t.Error("R222 it was not asked to prove itself")
	}
}

// TestOneConnection: what follows the proof uses the connection on which it was given.
func TestOneConnection(t *testing.T) {
	t.Run("R222 one connection", func(t *testing.T) {
		s, p := pairing(t)
		token, err := p.Add(t.Context(), extension, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		f := &thief{}
		later := httptest.NewServer(f)
		defer later.Close()
		got := browse(t, s.port(), map[string]any{
			"token": token, "wait": handTime, "settings": map[string]any{"least": 1000}, "later": later.Listener.Addr().(*net.TCPAddr).Port,
			"page": map[string]any{"item": saving(origin(t).URL + "/file"), "headers": map[string]string{"Cookie": "a=b"}},
		})
		if said := f.all(); len(got.Erased) != 1 || said != "" {
			t.Errorf("R222 %+v, and who took the port got %q", got, said)
		}
	})
}
