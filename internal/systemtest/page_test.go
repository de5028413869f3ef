package systemtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/front/control"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// livePage is the live page at the address that the control socket names.
type livePage struct {
	t             *testing.T
	origin, token string
}

// openPage gets an address and exchanges its code.
func openPage(t *testing.T, socket string) *livePage {
	t.Helper()
	c := control.NewClient(socket)
	defer c.Close()
	url, err := c.Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &livePage{t: t}
	origin, code, _ := strings.Cut(url, "/#")
	p.origin = origin
	var paired struct{ Token string }
	if f := p.send(&paired, "tributary.pair", code); f != "" {
		t.Fatal(f)
	}
	p.token = paired.Token
	return p
}

// get returns the status and the text of a path, as a browser at the page gets them.
func (p *livePage) get(path string, fields ...string) (int, string) {
	p.t.Helper()
	return p.do(http.MethodGet, path, "", fields...)
}

func (p *livePage) do(method, path, text string, fields ...string) (int, string) {
	p.t.Helper()
	q, err := http.NewRequestWithContext(p.t.Context(), method, p.origin+path, strings.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			q.Host = value
		}
		q.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// send calls a method, and returns the message of its error.
func (p *livePage) send(result any, method string, params ...any) (failed string) {
	p.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	status, body := p.do(http.MethodPost, "/jsonrpc", string(text), "Origin: "+p.origin)
	var answer struct {
		Result json.RawMessage
		Error  struct{ Message string }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		p.t.Fatalf("%s: %d %s", method, status, body)
	}
	if answer.Error.Message == "" {
		if err := json.Unmarshal(answer.Result, result); err != nil {
			p.t.Fatal(err)
		}
	}
	return answer.Error.Message
}

// call calls a method with the page's token, which must succeed.
func (p *livePage) call(result any, method string, params ...any) {
	p.t.Helper()
	if f := p.send(result, method, append([]any{"token:" + p.token}, params...)...); f != "" {
		p.t.Fatalf("%s: %s", method, f)
	}
}

// names returns the names of the files in a list.
func (p *livePage) names(method string, params ...any) (names []string) {
	p.t.Helper()
	var all []struct {
		Status string
		Files  []struct{ Path string }
	}
	p.call(&all, method, params...)
	for _, d := range all {
		names = append(names, filepath.Base(d.Files[0].Path)+" "+d.Status)
	}
	return names
}

// TestPageList: the live page adds, orders, pauses and removes downloads at its own address; its list is there after a restart, and
// what it knew then opens nothing.
func TestPageList(t *testing.T) {
	t.Run("R260 the live page and a restart", testPageList)
}

func testPageList(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := New(t, Object{Size: mid})
	cfg := settings()
	cfg.Admin, cfg.RPC, cfg.DownloadDir, cfg.Control = "127.0.0.1:0", "127.0.0.1:0", t.TempDir(), filepath.Join(t.TempDir(), "control", "s")
	r := newRig(t, s, cfg, "wifi")
	p := openPage(t, cfg.Control)
	for _, c := range []struct {
		path, field string
		want        int
		has         string
	}{
		{"/", "Sec-Fetch-Site: none", 200, "live/list.js"},
		{"/live/list.js", "Sec-Fetch-Site: same-origin", 200, "aria2.changePosition"},
		{"/", "Host: evil.example" + p.origin[strings.LastIndexByte(p.origin, ':'):], 403, "does not name this server"},
		{"/live/list.js", "Origin: http://127.0.0.1:9091", 403, "Another site"},
		{"/metrics", "Sec-Fetch-Site: none", 404, ""},
	} {
		if status, body := p.get(c.path, c.field); status != c.want || !strings.Contains(body, c.has) {
			t.Errorf("R260 %s with %s: %d %.100s", c.path, c.field, status, body)
		}
	}
	if status, _ := p.do(http.MethodPost, "/", "x"); status != http.StatusMethodNotAllowed {
		t.Errorf("a POST to the page: %d", status)
	}
	fixed := &livePage{t: t, origin: "http://" + r.d.Listeners()[0].String()} // admin
	if status, _ := fixed.do(http.MethodPost, "/jsonrpc", "{}", "Origin: "+fixed.origin); status != 405 && status != 404 {
		t.Errorf("R260 the admin port: %d", status)
	}

	gids := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		var gid string
		p.call(&gid, "aria2.addUri", []string{s.URL()}, map[string]string{"out": name, "pause": "true"})
		gids[name] = gid
	}
	var place int
	var text string
	p.call(&place, "aria2.changePosition", gids["d"], -3, "POS_CUR")
	p.call(&text, "aria2.remove", gids["b"])
	p.call(&text, "aria2.unpause", gids["a"])
	until(t, "a is complete", limit, func() bool { return len(p.names("aria2.tellStopped", -1, 10)) == 1 })
	want := []string{"d paused", "c paused"}
	if got := p.names("aria2.tellWaiting", 0, 10); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.stop()

	newRig(t, s, cfg, "wifi")
	later := openPage(t, cfg.Control)
	if later.origin == p.origin {
		t.Error("R260 the address of the next start is the same")
	}
	if f := later.send(&text, "aria2.getVersion", "token:"+p.token); f != "Unauthorized" {
		t.Errorf("R260 the token of an earlier start: %q", f)
	}
	if got := later.names("aria2.tellWaiting", 0, 10); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart: %v, want %v", got, want)
	}
	if got := fmt.Sprint(later.names("aria2.tellStopped", -1, 10)); got != "[a complete]" {
		t.Errorf("finished, after a restart: %s", got)
	}
	later.call(&text, "aria2.removeDownloadResult", gids["a"])
	if got := later.names("aria2.tellStopped", -1, 10); len(got) > 0 {
		t.Errorf("cleared: %v", got)
	}
}
