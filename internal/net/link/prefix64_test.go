package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"golang.org/x/net/dns/dnsmessage"
)

func TestFindNAT64(t *testing.T) {
	for name, tt := range map[string]struct {
		addrs, onLink, want string
	}{
		"/32":                    {"2001:db8:c000:aa::", "", "2001:db8::/32"},
		"/40":                    {"2001:db8:1c0:0:aa::", "", "2001:db8:100::/40"},
		"/48":                    {"2001:db8:122:c000:0:aa00::", "", "2001:db8:122::/48"},
		"/56":                    {"2001:db8:122:3c0:0:aa::", "", "2001:db8:122:300::/56"},
		"/64":                    {"2001:db8:122:344:c0:0:aa00:0", "", "2001:db8:122:344::/64"},
		"/96":                    {"2001:db8:122:344::192.0.0.170", "", "2001:db8:122:344::/96"},
		"the other address":      {"2001:db8:122:344::192.0.0.171", "", "2001:db8:122:344::/96"},
		"well-known":             {"64:ff9b::192.0.0.170", "", "64:ff9b::/96"},
		"local use":              {"64:ff9b:1:2::192.0.0.170", "", "64:ff9b:1:2::/96"},
		"local use, short":       {"64:ff9b:1:c000:0:aa00::", "", ""},
		"the second address":     {"2001:db8::1 2001:db8:64::192.0.0.170", "", "2001:db8:64::/96"},
		"no known address":       {"2001:db8:122:344::192.0.2.1", "", ""},
		"reserved byte":          {"2001:db8:122:344:100::192.0.0.170", "", ""},
		"ambiguous":              {"2001:db8:c000:aa::192.0.0.170", "", ""},
		"ambiguous, then not":    {"2001:db8:c000:aa::192.0.0.170 64:ff9b::192.0.0.171", "", "64:ff9b::/96"},
		"private":                {"fd00::192.0.0.170", "", ""},
		"link-local":             {"fe80::192.0.0.170", "", ""},
		"multicast":              {"ff0e::192.0.0.170", "", ""},
		"IPv4-compatible":        {"::192.0.0.170", "", ""},
		"IPv4-mapped":            {"::ffff:192.0.0.170", "", ""},
		"6to4":                   {"2002:a00:1::192.0.0.170", "", ""},
		"Teredo":                 {"2001:0:a00:1::192.0.0.170", "", ""},
		"metadata, in no prefix": {"fd00:ec2::192.0.0.170", "", ""},
		"the link's own network": {"2001:db8:5::192.0.0.170", "2001:db8:5::/64", ""},
		"IPv4":                   {"192.0.0.170", "", ""},
		"nothing":                {"", "", ""},
	} {
		var want netip.Prefix
		if tt.want != "" {
			want = netip.MustParsePrefix(tt.want)
		}
		var addrs []netip.Addr
		if tt.addrs != "" {
			addrs = ips(strings.Fields(tt.addrs)...)
		}
		if got := findNAT64(addrs, prefixes(strings.Fields(tt.onLink)...)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// sixOnly returns a link without IPv4 whose DNS64 answers as scripted. four holds the names that have only IPv4 addresses.
func sixOnly(t *testing.T, prefix string, four map[string]string) (*DNSServer, Link) {
	t.Helper()
	s := ServeDNS(t, "[::1]:0", func(a Asked) Said {
		switch to, known := four[a.Name]; {
		case a.Name == nat64Name+".":
			if prefix == "fail" {
				return fail
			}
			if prefix == "" || a.Type != dnsmessage.TypeAAAA {
				return Said{}
			}
			return Said{Addrs: []netip.Addr{toNAT64(netip.MustParsePrefix(prefix), nat64Addrs[0])}}
		case known:
			return Said{Addrs: ips(to)}
		}
		return Said{RCode: dnsmessage.RCodeNameError}
	})
	l := lnk("fake0", 7, "2001:db8::5")
	l.DNS = []netip.AddrPort{s.Addr}
	return s, l
}

func TestPrefixIsAsked(t *testing.T) {
	names := map[string]string{
		"a.test.": "93.184.215.14", "rebind.example.com.": "10.1.2.3", "six.example.com.": "2a0a:9::9", "hidden.example.com.": "2a0a:64::a01:203",
		"plain.example.com.": "2a0a:9::cb00:7109",
	}
	const six = "2a0a:64::/96"
	for name, tt := range map[string]struct {
		prefix, host, want string
		asked              int // questions for the prefix
		denied             bool
	}{
		"literal":                    {six, "93.184.215.14", "2a0a:64::5db8:d70e", 1, false},
		"name with A only":           {six, "a.test", "2a0a:64::5db8:d70e", 1, false},
		"name with AAAA":             {six, "six.example.com", "2a0a:9::9", 0, false},
		"IPv6 literal":               {six, "2a0a:9::9", "2a0a:9::9", 0, false},
		"no NAT64":                   {"", "93.184.215.14", "", 1, false},
		"no NAT64, name":             {"", "a.test", "", 1, false},
		"private literal":            {six, "10.1.2.3", "", 1, true},
		"metadata":                   {six, "169.254.169.254", "", 0, true},
		"public name of private A":   {six, "rebind.example.com", "", 1, true},
		"public name, DNS64 private": {six, "hidden.example.com", "", 1, true},
		"IPv6 literal hides private": {six, "2a0a:64::a01:203", "", 1, true},
		"hides metadata":             {six, "2a0a:64::a9fe:a9fe", "", 1, true},
		"hides it from no NAT64":     {"", "2a0a:64::a01:203", "2a0a:64::a01:203", 1, false},
		"may hide, no answer":        {"fail", "2a0a:64::a01:203", "", 1, false},
		"hides metadata at /32":      {"2a0a:db8::/32", "2a0a:db8:a9fe:a9fe::", "", 1, true},
		"hostile prefix":             {"fd00:ec2::/96", "93.184.215.14", "", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := sixOnly(t, tt.prefix, names)
			dialed := ""
			var reach Destinations
			d := &Dialer{
				Binder: &recorder{}, Resolver: &Resolver{Binder: &recorder{}}, Allow: reach.Check,
				connect: func(_ context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
					dialed = to.Addr().String()
					return nil, errRefused
				},
			}
			_, _, err := d.Dial(t.Context(), l, "tcp", net.JoinHostPort(tt.host, "80"))
			if dialed != tt.want || err == nil || errors.Is(err, ErrDenied) != tt.denied {
				t.Errorf("dialed %q, want %q; %v", dialed, tt.want, err)
			}
			if n := prefixQuestions(s); min(n, 1) != tt.asked { // a refused answer is asked for again
				t.Errorf("asked %d times for the prefix: %v", n, s.Asks())
			}
		})
	}
}

// One question for many dials, and another one in another network; none over a link that has IPv4.
func TestPrefixIsRemembered(t *testing.T) {
	s, l := sixOnly(t, "64:ff9b::/96", nil)
	r := &Resolver{Binder: &recorder{}}
	want := netip.MustParsePrefix("64:ff9b::/96")
	ask := func(l Link) netip.Prefix {
		p, err := r.nat64(t.Context(), l)
		if err != nil {
			t.Error(err)
		}
		return p
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if p := ask(l); p != want {
				t.Errorf("prefix %v", p)
			}
		})
	}
	wg.Wait()
	if n := prefixQuestions(s); n != 1 || r.knownNAT64(l) != want {
		t.Errorf("asked %d times, known %v", n, r.knownNAT64(l))
	}
	l.Network = "another"
	if r.knownNAT64(l).IsValid() || ask(l) != want || prefixQuestions(s) != 2 {
		t.Errorf("another network: asked %d times", prefixQuestions(s))
	}
	both := l
	both.Addrs = append(slices.Clone(l.Addrs), netip.MustParseAddr("192.0.2.5"))
	if ask(both).IsValid() || prefixQuestions(s) != 2 {
		t.Error("asked over a link with IPv4")
	}
	elsewhere := &Resolver{Binder: &recorder{}, Over: func(Link, netip.Addr) (Link, bool, error) { return lnk("vpn0", 9), false, nil }}
	if p, err := elsewhere.nat64(t.Context(), l); p.IsValid() || err != nil || prefixQuestions(s) != 2 {
		t.Errorf("a server of another interface: %v, %v", p, err)
	}
}

// TestBehind: Behind returns the IPv4 address behind an IPv6 address once the prefix of the link is known.
func TestBehind(t *testing.T) {
	_, l := sixOnly(t, "2001:db8:64::/96", nil)
	d := &Dialer{Resolver: &Resolver{Binder: &recorder{}}}
	behind := func(l Link, a, want string) {
		t.Helper()
		if got := d.Behind(l, netip.MustParseAddr(a)); got != netip.MustParseAddr(want) {
			t.Errorf("behind %s: %v, want %s", a, got, want)
		}
	}
	behind(l, "2001:db8:64::203.0.113.1", "2001:db8:64::203.0.113.1")
	if _, err := d.Resolver.nat64(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	behind(l, "2001:db8:64::203.0.113.1", "203.0.113.1")
	behind(l, "2001:db8:65::203.0.113.1", "2001:db8:65::203.0.113.1")
	behind(l, "203.0.113.1", "203.0.113.1")
	l.Name = "other"
	behind(l, "2001:db8:64::203.0.113.1", "2001:db8:64::203.0.113.1")
	l.NAT64 = netip.MustParsePrefix("2001:db8:65::/96") // as reported by the app
	behind(l, "2001:db8:65::203.0.113.1", "203.0.113.1")
}

func prefixQuestions(s *DNSServer) int {
	n := 0
	for _, a := range s.Asks() {
		if a.Name == nat64Name+"." && a.Type == dnsmessage.TypeAAAA {
			n++
		}
	}
	return n
}
