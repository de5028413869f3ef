package rpc

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tributary-http/tributary/internal/front/admission"
)

// paged starts a Server with a live page, and returns a caller for the page's own address.
func paged(t *testing.T, owner admission.Owner) (s *server, page *server, origin string) {
	t.Helper()
	s = start(t, func(c *Config) { c.Owner = owner })
	l, err := ListenPage()
	if err != nil {
		t.Fatal(err)
	}
	h := s.server.Page(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "live") }))
	over := make(chan struct{})
	go func() { defer close(over); _ = h.Serve(l) }()
	t.Cleanup(func() { _ = h.Close(); <-over })
	origin = "http://" + l.Addr().String()
	return s, &server{caller: &caller{t, origin + path}, server: s.server}, origin
}

func me(netip.AddrPort, netip.AddrPort) (uint32, error) { return uint32(os.Getuid()), nil }

// link returns a code for the page.
func (s *server) link(origin string) (code string) {
	s.t.Helper()
	url, err := s.server.PageLink()
	code, ours := strings.CutPrefix(url, origin+"/#")
	if err != nil || !ours || len(code) != codeLetter {
		s.t.Fatal(url, err)
	}
	return code
}

// TestPage: the live page has control only at its own address, after a code from the terminal, until another window is paired.
func TestPage(t *testing.T) {
	t.Run("R260 the page's address", testPage)
}

func testPage(t *testing.T) {
	s, page, origin := paged(t, me)
	if status, _, body := (&caller{t, origin}).try("GET", ""); status != 200 || body != "live" {
		t.Fatalf("%d %s", status, body)
	}
	call := func(at *server, token, from string) string {
		t.Helper()
		_, failed := at.ask(from, "aria2.getVersion", "token:"+token)
		return failed
	}
	if got := call(page, "", origin); got != "Unauthorized" {
		t.Errorf("R260 the page that was merely opened: %q", got)
	}
	code := page.link(origin)
	for _, from := range []string{"", extension, "http://127.0.0.1:9091", strings.Replace(origin, "http", "https", 1), origin + "0", "null"} {
		if page.show(code, from) != "" || s.show(code, from) != "" {
			t.Errorf("R260 %q uses the page's code", from)
		}
	}
	first := page.show(code, origin)
	if !tokenForm.MatchString(first) || page.show(code, origin) != "" {
		t.Fatalf("R260 %q, and a code works twice", first)
	}
	for _, c := range []struct{ what, token, from, want string }{
		{"the page", first, origin, ""},
		{"the page with another token", first[1:] + "0", origin, "Unauthorized"},
		{"a program", first, "", "Unauthorized"},
		{"an extension", first, extension, "Unauthorized"},
		{"the page at the fixed address", first, "http://127.0.0.1:9091", "Forbidden"},
		{"another port of its address", first, origin + "0", "Forbidden"},
		{"another page", first, "https://evil.example", "Forbidden"},
	} {
		if got := call(page, c.token, c.from); got != c.want {
			t.Errorf("R260 %s: %q, want %q", c.what, got, c.want)
		}
	}
	for _, foreign := range []string{"evil.example", "evil.localhost", "127.0.0.1"} {
		host := foreign + origin[strings.LastIndexByte(origin, ':'):]
		status, _, _ := page.try("POST", request(t, "aria2.getGlobalStat"), "Host: "+host, "Origin: http://"+host)
		if status != http.StatusForbidden {
			t.Errorf("R260 a name that leads here: %d for %s", status, host)
		}
	}
	for from, want := range map[string]int{origin: 101, "https://evil.example": 403, "http://127.0.0.1:9091": 403, "null": 403} {
		c, resp, err := websocket.Dial(t.Context(), strings.Replace(page.url, "http", "ws", 1), &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {from}}})
		if resp == nil || resp.StatusCode != want {
			t.Errorf("R260 a socket from %s: %v %v", from, resp, err)
		}
		if err == nil {
			_ = c.CloseNow()
		}
	}
	old := page.link(origin)
	second := page.show(page.link(origin), origin)
	if call(page, first, origin) != "Unauthorized" || call(page, second, origin) != "" || page.show(old, origin) != "" {
		t.Error("R260 a second window does not replace the first, or an old code works")
	}
	if all, err := s.server.Pairings.All(); len(all) > 0 || err != nil {
		t.Errorf("R260 it is remembered: %v %v", all, err)
	}
	_, _, later := paged(t, me)
	if _, failed := page.ask(later, "aria2.getVersion", "token:"+second); failed != "Forbidden" || later == origin {
		t.Errorf("R260 the address of another start: %s, %q", later, failed)
	}
}

// TestPageOtherUsers: where users are not told apart, the page gets no code; other users get nothing from its address.
func TestPageOtherUsers(t *testing.T) {
	t.Run("R260 other users", func(t *testing.T) {
		if s, _, _ := paged(t, nil); true {
			if url, err := s.server.PageLink(); err == nil {
				t.Errorf("R260 %s where users are not told apart", url)
			}
		}
		_, page, origin := paged(t, func(netip.AddrPort, netip.AddrPort) (uint32, error) { return uint32(os.Getuid()) + 1, nil })
		code := page.link(origin)
		if status, _, body := page.try("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tributary.pair","params":[%q]}`, code), "Origin: "+origin); status != 403 {
			t.Errorf("R260 %d %s", status, body)
		}
	})
	if url, err := start(t, func(c *Config) { c.Owner = me }).server.PageLink(); err == nil || !strings.Contains(err.Error(), "admin =") {
		t.Errorf("%s %v where there is no page", url, err)
	}
}
