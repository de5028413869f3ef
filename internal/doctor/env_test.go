package doctor

import (
	"net/netip"
	"strings"
	"testing"
)

func TestUpstream(t *testing.T) {
	own := netip.MustParseAddrPort("127.0.0.1:8080")
	for _, c := range []struct {
		env  map[string]string
		want string // part of the error, "" = none
	}{
		{nil, ""},
		{map[string]string{"http_proxy": "http://127.0.0.1:8080"}, ""},
		{map[string]string{"http_proxy": "localhost:8080/", "HTTP_PROXY": "http://other:1"}, ""},
		{map[string]string{"http_proxy": "http://[::1]:8080"}, ""},
		{map[string]string{"http_proxy": "http://127.0.0.1:3128"}, "env -u http_proxy"},
		{map[string]string{"ALL_PROXY": "socks5://u:secret@10.0.0.1:1080"}, "ALL_PROXY=socks5://...@10.0.0.1:1080"},
		{map[string]string{"HTTP_PROXY": "http://%zz"}, "HTTP_PROXY="},
		{map[string]string{"no_proxy": "x", "https_proxy": ""}, ""},
		{map[string]string{"https_proxy": "http://proxy.corp:3128"}, "env -u https_proxy tributary serve"},
		{
			map[string]string{"http_proxy": "http://proxy.corp:1", "https_proxy": "http://proxy.corp:1", "all_proxy": "localhost:8080"},
			"env -u http_proxy -u https_proxy tributary serve",
		},
	} {
		err := Upstream(func(n string) string { return c.env[n] }, "serve", own)
		switch {
		case (err == nil) != (c.want == ""):
			t.Errorf("R17 %v: %v", c.env, err)
		case err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")):
			t.Errorf("R17 %v: %v, want %q", c.env, err, c.want)
		}
	}
}
