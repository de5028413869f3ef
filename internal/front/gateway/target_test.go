package gateway

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzTarget: the host of any path has only one interpretation, and a redirect leads only to valid targets.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"files.example/a?b=c", "a@b.example/x", "[::1]:8443/x", "files.example", "a.example:443//x", "127.1/x", "a%2fb/x", "a.example\\@b/x", "xn--a.example/../x",
	} {
		f.Add(s, "https://cdn.example/x?y=z#w")
	}
	f.Fuzz(func(t *testing.T, s, location string) {
		at, err := cutTarget(s)
		if err != nil || checkPath(s) != nil {
			return
		}
		holds := func(at target) {
			t.Helper()
			u, err := url.Parse("https://" + at.host + at.path)
			if err != nil {
				return // a path that net/url rejects, such as one with a bad escape, is sent unchanged
			}
			if u.Host != at.host || u.User != nil || !strings.HasPrefix(at.path, "/") {
				t.Errorf("%q: host %q, read as %q", s, at.host, u.Host)
			}
			if again, err := cleanHost(at.host); err != nil || again != at.host {
				t.Errorf("%q: %q is %q on a second look, %v", s, at.host, again, err)
			}
			if dialed := at.url().Host; dialed != at.host && dialed != at.host+":443" {
				t.Errorf("%q: %q is dialed as %q", s, at.host, dialed)
			}
		}
		holds(at)
		if next, err := at.resolve(location); err == nil {
			holds(next)
			if err := checkPath(next.path); err != nil {
				t.Errorf("%q, %q: %v", s, location, err)
			}
		}
	})
}
