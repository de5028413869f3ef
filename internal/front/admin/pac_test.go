package admin

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/engine"
)

// TestAutoConfig checks the page; lab/pac runs the script in a JavaScript engine.
func TestAutoConfig(t *testing.T) {
	addr := serve(t)
	resp, err := http.Get("http://" + addr + "/proxy.pac")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if v := resp.Header.Get("Content-Type"); v != "application/x-ns-proxy-autoconfig" {
		t.Errorf("Content-Type: %s", v)
	}
}

func TestAutoConfigNamesTheProxy(t *testing.T) {
	for _, c := range []struct {
		name  string
		proxy net.TCPAddr
		want  string
	}{
		{"IPv6", net.TCPAddr{IP: net.IPv6loopback, Port: 3128}, "PROXY [::1]:3128; DIRECT"},
		{"another machine's view", net.TCPAddr{IP: net.IPv4(192, 168, 1, 9), Port: 80}, "PROXY 192.168.1.9:80; DIRECT"},
		{"everywhere", net.TCPAddr{IP: net.IPv4zero, Port: 8080}, "PROXY 127.0.0.1:8080; DIRECT"},
		{"everywhere, IPv6", net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}, "PROXY 127.0.0.1:8080; DIRECT"},
	} {
		t.Run("R73 "+c.name, func(t *testing.T) {
			s := httptest.NewServer(Handler(http.NotFoundHandler(), http.NotFoundHandler(), func() (s engine.Status) { return }, &c.proxy))
			defer s.Close()
			_, script := ask(t, "GET", s.Listener.Addr().String(), "/proxy.pac", "")
			if want := `return "` + c.want + `";`; strings.Count(script, "PROXY ") != 1 || !strings.Contains(script, want) {
				t.Errorf("want %s in\n%s", want, script)
			}
		})
	}
}
