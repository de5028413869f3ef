package redirect

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(all ...string) (ps []netip.Prefix) {
	for _, s := range all {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func some() Rules {
	return Rules{
		To: 4321, Ports: []uint16{80, 8000}, Users: []Users{{1000, 1000}, {10000, 19999}}, Except: []Users{{998, 998}},
		Leave: prefixes("169.254.0.0/16", "fe80::/10"), Over: []string{"wlan0", "wg0"},
		Around: []string{"wg0"}, LeaveAround: prefixes("10.0.0.0/8", "fc00::/7"),
	}
}

func TestNftables(t *testing.T) {
	const want = `table inet tributary_redirect
delete table inet tributary_redirect
table inet tributary_redirect {
	chain output {
		type nat hook output priority -100; policy accept;
		meta l4proto != tcp return
		meta mark 0x740000 return
		oifname != { "wlan0", "wg0" } return
		meta skuid { 998 } return
		meta skuid != { 1000, 10000-19999 } return
		ip daddr { 169.254.0.0/16 } return
		ip6 daddr { fe80::/10 } return
		oifname { "wg0" } ip daddr { 10.0.0.0/8 } return
		oifname { "wg0" } ip6 daddr { fc00::/7 } return
		tcp dport { 80, 8000 } redirect to :4321
	}
}
`
	if got := (nftables{}).script(some()); got != want {
		t.Errorf("got\n%s", got)
	}
	r := some()
	r.NoIPv6, r.Users, r.Except, r.Leave, r.Around = true, nil, nil, nil, nil
	got := (nftables{}).script(r)
	if !strings.Contains(got, "meta nfproto ipv6 return\n") || strings.Contains(got, "skuid") || strings.Contains(got, "daddr") {
		t.Errorf("everybody, IPv4 only:\n%s", got)
	}
	r = some()
	r.NoQUIC = true
	const quic = `	chain quic {
		type filter hook output priority 0; policy accept;
		meta l4proto != udp return
		meta mark 0x740000 return
		oifname != { "wlan0", "wg0" } return
		meta skuid { 998 } return
		meta skuid != { 1000, 10000-19999 } return
		ip daddr { 169.254.0.0/16 } return
		ip6 daddr { fe80::/10 } return
		oifname { "wg0" } ip daddr { 10.0.0.0/8 } return
		oifname { "wg0" } ip6 daddr { fc00::/7 } return
		udp dport 443 reject
	}
}
`
	if got := (nftables{}).script(r); got != strings.TrimSuffix(want, "}\n")+quic {
		t.Errorf("R164 without QUIC:\n%s", got)
	}
	r.Over = nil
	if got := (nftables{}).script(r); !strings.Contains(got, "\t\treturn\n") {
		t.Errorf("no link is used:\n%s", got)
	}
}

func TestIptables(t *testing.T) {
	const want = `*nat
:TRIBUTARY_REDIRECT - [0:0]
-A TRIBUTARY_REDIRECT -m mark --mark 0x740000 -j RETURN
-A TRIBUTARY_REDIRECT -m owner --uid-owner 998 -j RETURN
-A TRIBUTARY_REDIRECT -d 169.254.0.0/16 -j RETURN
-A TRIBUTARY_REDIRECT -o wg0 -d 10.0.0.0/8 -j RETURN
-A TRIBUTARY_REDIRECT -o wlan0 -p tcp --dport 80 -m owner --uid-owner 1000 -j REDIRECT --to-ports 4321
-A TRIBUTARY_REDIRECT -o wlan0 -p tcp --dport 80 -m owner --uid-owner 10000-19999 -j REDIRECT --to-ports 4321
-A TRIBUTARY_REDIRECT -o wg0 -p tcp --dport 80 -m owner --uid-owner 1000 -j REDIRECT --to-ports 4321
-A TRIBUTARY_REDIRECT -o wg0 -p tcp --dport 80 -m owner --uid-owner 10000-19999 -j REDIRECT --to-ports 4321
-A OUTPUT -p tcp -j TRIBUTARY_REDIRECT
COMMIT
`
	r := some()
	r.Ports = []uint16{80}
	if got := (iptables{}).script(r, false, false); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := (iptables{}).script(r, true, false); strings.Contains(got, "OUTPUT") {
		t.Errorf("OUTPUT gets the chain twice:\n%s", got)
	}
	if got := (iptables{}).script(r, true, true); !strings.Contains(got, "-d fe80::/10 -j RETURN") || strings.Contains(got, "169.254") {
		t.Errorf("IPv6:\n%s", got)
	}
	const quic = `*filter
:TRIBUTARY_REDIRECT - [0:0]
-A TRIBUTARY_REDIRECT -m mark --mark 0x740000 -j RETURN
-A TRIBUTARY_REDIRECT -m owner --uid-owner 998 -j RETURN
-A TRIBUTARY_REDIRECT -d 169.254.0.0/16 -j RETURN
-A TRIBUTARY_REDIRECT -o wg0 -d 10.0.0.0/8 -j RETURN
-A TRIBUTARY_REDIRECT -o wlan0 -p udp --dport 443 -m owner --uid-owner 1000 -j REJECT
-A TRIBUTARY_REDIRECT -o wlan0 -p udp --dport 443 -m owner --uid-owner 10000-19999 -j REJECT
-A TRIBUTARY_REDIRECT -o wg0 -p udp --dport 443 -m owner --uid-owner 1000 -j REJECT
-A TRIBUTARY_REDIRECT -o wg0 -p udp --dport 443 -m owner --uid-owner 10000-19999 -j REJECT
-A OUTPUT -p udp -j TRIBUTARY_REDIRECT
COMMIT
`
	if got := (iptables{}).rejection(r, false, false); got != quic {
		t.Errorf("R164 without QUIC:\n%s", got)
	}
	r.Over = nil
	if got := (iptables{}).script(r, true, false); strings.Contains(got, "REDIRECT --to") {
		t.Errorf("no link is used:\n%s", got)
	}
}

func TestParseUsers(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Users
	}{{"0", Users{0, 0}}, {"1000", Users{1000, 1000}}, {"10000-19999", Users{10000, 19999}}, {"5-5", Users{5, 5}}} {
		if got, err := ParseUsers(tt.in); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v", tt.in, got, err)
		}
	}
	for _, in := range []string{"", "-", "a", "1-", "-1", "2-1", "1-2-3", "4294967295", "4294967296", "0-4294967295", " 1"} {
		if got, err := ParseUsers(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, r := range map[string]Rules{
		"no target":               {Ports: []uint16{80}},
		"no port":                 {To: 1},
		"port 0":                  {To: 1, Ports: []uint16{0}},
		"a loop":                  {To: 80, Ports: []uint16{80}},
		"a name that is a set":    {To: 1, Ports: []uint16{80}, Over: []string{`a", "b`}},
		"a name that is an order": {To: 1, Ports: []uint16{80}, Over: []string{"a -j ACCEPT"}},
	} {
		if r.Check() == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := On(context.Background(), r); err == nil {
			t.Errorf("%s: On has no error", name)
		}
	}
	if err := some().Check(); err != nil {
		t.Error(err)
	}
}

// kept is a firewall in memory.
type kept struct {
	by     string
	broken error
	rules  *Rules
}

func (k *kept) name() string { return k.by }

func (k *kept) add(_ context.Context, r Rules) (Installed, error) {
	if k.broken != nil {
		return Installed{}, k.broken
	}
	k.rules = &r
	return Installed{By: k.by, To: r.To, V4: true}, nil
}

func (k *kept) remove(context.Context) error { k.rules = nil; return nil }

func (k *kept) find(context.Context) (Installed, error) {
	if k.rules == nil {
		return Installed{}, k.broken
	}
	return Installed{By: k.by, To: k.rules.To, V4: true}, nil
}

// TestChoice: the preferred firewall that works has the rules, and no other has any.
func TestChoice(t *testing.T) {
	ctx, broken := context.Background(), errors.New("the kernel has no such thing")
	a, b := &kept{by: "a"}, &kept{by: "b"}
	all := []firewall{a, b}
	b.rules = &Rules{To: 1}
	if in, err := on(ctx, all, some()); in.By != "a" || err != nil || a.rules == nil || b.rules != nil {
		t.Errorf("%v, %v; a has %v, b has %v", in, err, a.rules, b.rules)
	}
	if in, err := find(ctx, all); in.By != "a" || in.To != 4321 || err != nil {
		t.Errorf("found %v, %v", in, err)
	}
	if err := off(ctx, all); err != nil || a.rules != nil {
		t.Errorf("off: %v, %v", err, a.rules)
	}
	a.broken = broken
	if in, err := on(ctx, all, some()); in.By != "b" || err != nil || b.rules == nil {
		t.Errorf("with a broken: %v, %v", in, err)
	}
	if in, err := find(ctx, all); in.By != "b" || err != nil {
		t.Errorf("with a broken: found %v, %v", in, err)
	}
	b.broken, b.rules = broken, nil
	if _, err := on(ctx, all, some()); !errors.Is(err, broken) {
		t.Errorf("with both broken: %v", err)
	}
	if _, err := on(ctx, nil, some()); !errors.Is(err, ErrNoFirewall) {
		t.Errorf("without any: %v", err)
	}
}
