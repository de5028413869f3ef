package pac

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/dop251/goja"

	"github.com/tributary-http/tributary/internal/front/admin"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// evaluate returns the script's answer to a browser about a URL.
func evaluate(t *testing.T, script, target string) string {
	t.Helper()
	vm := goja.New()
	if _, err := vm.RunString(script); err != nil {
		t.Fatal(err)
	}
	find, ok := goja.AssertFunction(vm.Get("FindProxyForURL"))
	if !ok {
		t.Fatalf("no FindProxyForURL in\n%s", script)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	v, err := find(goja.Undefined(), vm.ToValue(target), vm.ToValue(u.Hostname()))
	if err != nil {
		t.Fatal(err)
	}
	return v.String()
}

func TestAutoConfig(t *testing.T) {
	pages := admin.Handler(http.NotFoundHandler(), http.NotFoundHandler(), func() (s engine.Status) { return }, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	served := httptest.NewServer(pages)
	defer served.Close()
	resp, err := http.Get(served.URL + "/proxy.pac")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	script := string(text)
	const proxy, direct = "PROXY 127.0.0.1:8080; DIRECT", "DIRECT"
	for target, want := range map[string]string{
		"http://deb.debian.org/debian/":        proxy,
		"https://deb.debian.org:8443/":         proxy,
		"http://Example.COM./":                 proxy,
		"http://8.8.8.8/":                      proxy,
		"http://172.15.0.1/":                   proxy,
		"http://172.32.0.1/":                   proxy,
		"http://11.0.0.1/":                     proxy,
		"http://192.169.0.1/":                  proxy,
		"http://[2001:db8::1]/":                proxy,
		"http://10.example.com/":               proxy,
		"http://127.0.0.1.example.com/":        proxy,
		"http://localhost.example.com/":        proxy,
		"http://local/":                        direct,
		"http://printer/":                      direct,
		"http://Printer.local/":                direct,
		"http://localhost:3000/":               direct,
		"http://app.localhost/":                direct,
		"http://127.0.0.1:3000/":               direct,
		"http://127.255.0.1/":                  direct,
		"http://0.0.0.0/":                      direct,
		"http://10.1.2.3/":                     direct,
		"http://172.16.0.1/":                   direct,
		"http://172.31.255.255/":               direct,
		"http://192.168.1.1/":                  direct,
		"http://169.254.169.254/":              direct,
		"http://[::1]:8080/":                   direct,
		"http://[::ffff:192.168.1.1]/":         direct,
		"http://[fe80::1]/":                    direct,
		"http://[fd12:3456::1]/":               direct,
		"http://nas.home.arpa/":                direct,
		"http://10.example.com:80/10.0.0.1":    proxy,
		"http://[fd00:ec2::254]/latest/":       direct,
		"http://[64:ff9b::192.0.2.1]/":         proxy,
		"http://wiki.internal/":                direct,
		"http://internal.example.com/internal": proxy,
	} {
		t.Run("R73 "+target, func(t *testing.T) {
			if got := evaluate(t, script, target); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
