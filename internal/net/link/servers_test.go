package link

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func ports(ss ...string) (ps []netip.AddrPort) {
	for _, s := range ss {
		ps = append(ps, netip.MustParseAddrPort(s))
	}
	return ps
}

func TestServers(t *testing.T) {
	both := lnk("eth0", 2, "192.0.2.7", "2001:db8::7")
	four := lnk("eth0", 2, "192.0.2.7")
	configured := four
	configured.DNS = ports("192.0.2.53:5353")
	const stub = "# local\nnameserver 127.0.0.53\noptions edns0\nsearch corp.example\n"
	tests := []struct {
		name  string
		link  Link
		files []string // contents; "-" = missing
		all   bool
		want  []netip.AddrPort
		bound bool
		err   string
	}{
		{"configuration wins", configured, []string{"nameserver 192.0.2.1"}, false, ports("192.0.2.53:5353"), true, ""},
		{"first file with any", both, []string{"-", stub, "nameserver 192.0.2.1\nnameserver 192.0.2.2", "nameserver 192.0.2.3"}, false, ports("192.0.2.1:53", "192.0.2.2:53"), true, ""},
		{"loopback servers are left out", both, []string{"nameserver ::1\nnameserver 2001:db8::53\nnameserver 0.0.0.0\n"}, false, ports("[2001:db8::53]:53"), true, ""},
		{"comments and nonsense", both, []string{"; nameserver 192.0.2.8\nnameserver\nnameserver x\n nameserver\t192.0.2.1 # me\n"}, false, ports("192.0.2.1:53"), true, ""},
		{"twice the same", both, []string{"nameserver 192.0.2.1\nnameserver ::ffff:192.0.2.1"}, false, ports("192.0.2.1:53"), true, ""},
		{"R148 families without an address", four, []string{"nameserver 2001:db8::53\nnameserver 192.0.2.1"}, false, ports("192.0.2.1:53"), true, ""},
		{"only the other family", four, []string{"nameserver 2001:db8::53"}, false, nil, true, "[link.eth0]"},
		{"link-local servers of this link and of another", four, []string{"nameserver fe80::1%eth0\nnameserver fe80::2%wlan0\nnameserver fe80::3"}, false, ports("[fe80::1%eth0]:53", "[fe80::3%eth0]:53"), true, ""},
		{"stub, every link allowed", four, []string{"-", stub}, true, ports("127.0.0.53:53"), false, ""},
		{"R198 stub, not every link allowed", four, []string{stub}, false, nil, false, "dns = ["},
		{"nothing", four, []string{"-", "search corp.example"}, true, nil, false, "[link.eth0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &Resolver{AllLinksAllowed: tt.all, files: files(t, tt.files...)}
			from, err := r.Servers(tt.link)
			if !slices.Equal(from.Addrs, tt.want) {
				t.Errorf("got %v", from.Addrs)
			}
			for _, a := range from.Addrs {
				if l := from.over[a]; (l != nil) != tt.bound || l != nil && l.Name != tt.link.Name {
					t.Errorf("%v is asked over %v", a, l)
				}
			}
			if tt.err == "" && err != nil || tt.err != "" && (!errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// TestServersOfOthers: a server is asked over the interface that leads to it, and a server on this machine only where any link may
// be asked.
func TestServersOfOthers(t *testing.T) {
	l := lnk("eth0", 2, "192.0.2.7")
	over := func(_ Link, server netip.Addr) (Link, bool, error) {
		switch server.String() {
		case "10.8.0.1":
			return Link{Name: "wg0"}, false, nil
		case "192.0.2.7":
			return Link{Name: "eth0"}, true, nil
		case "172.17.0.1":
			return Link{Name: "docker0"}, false, ErrOffLink
		}
		return l, false, nil
	}
	all := files(t, "nameserver 172.17.0.1\nnameserver 10.8.0.1\nnameserver 192.0.2.7\nnameserver 192.0.2.53\n")
	for _, allowed := range []bool{false, true} {
		from, err := (&Resolver{Over: over, AllLinksAllowed: allowed, files: all}).Servers(l)
		got := map[string]string{}
		for _, a := range from.Addrs {
			got[a.Addr().String()] = from.over[a].Name
		}
		want := map[string]string{"10.8.0.1": "wg0", "192.0.2.53": "eth0"}
		if allowed {
			want["192.0.2.7"] = "eth0"
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("R198 every link allowed %v: %v, %v; want %v", allowed, got, err, want)
		}
	}
	if _, err := (&Resolver{Over: over, files: files(t, "nameserver 172.17.0.1\n")}).Servers(l); !errors.Is(err, ErrNoServer) {
		t.Errorf("R198 none is left: %v", err)
	}
}

// files writes files with these contents and returns their names; "-" is not written.
func files(t *testing.T, contents ...string) []string {
	t.Helper()
	names := []string{} // not nil: nil stands for the files of the system
	for i, c := range contents {
		name := filepath.Join(t.TempDir(), string(rune('a'+i)))
		if c != "-" {
			if err := os.WriteFile(name, []byte(c), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		names = append(names, name)
	}
	return names
}
