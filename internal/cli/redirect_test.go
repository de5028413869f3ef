package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/host/redirect"
)

// TestOwnConnections: the proxy's own connections are exempt by user, and by mark alone only if its user was named.
func TestOwnConnections(t *testing.T) {
	for _, tt := range []struct {
		name   string
		users  string
		proxy  control.Redirect
		except string
		err    string
		warn   string
	}{
		{"R157 everybody", "", control.Redirect{UID: 998, Marked: true}, "998", "", "user 998 is exempt"},
		{"R157 everybody, no mark", "", control.Redirect{UID: 998}, "998", "", "user 998 is exempt"},
		{"R157 its own user by name", "998", control.Redirect{UID: 998, Marked: true}, "", "", ""},
		{"R157 its own user by name, no mark", "998", control.Redirect{UID: 998}, "", "CAP_NET_ADMIN", ""},
		{"R157 its own user in a range", "900-1000", control.Redirect{UID: 998, Marked: true}, "998", "", "user 998 is exempt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := redirect.Rules{Ports: []uint16{80}}
			var want []redirect.Users
			for _, x := range []struct {
				text string
				to   *[]redirect.Users
			}{{tt.users, &r.Users}, {tt.except, &want}} {
				if x.text != "" {
					u, err := redirect.ParseUsers(x.text)
					if err != nil {
						t.Fatal(err)
					}
					*x.to = append(*x.to, u)
				}
			}
			warn, err := complete(&r, tt.proxy)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !strings.Contains(warn, tt.warn) || tt.warn == "" && warn != "" {
				t.Errorf("%q, %v; want %q", warn, err, tt.warn)
			}
			if !reflect.DeepEqual(r.Except, want) {
				t.Errorf("%+v, want all but %v", r, want)
			}
		})
	}
}
