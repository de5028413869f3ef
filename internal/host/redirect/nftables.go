package redirect

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// table is the name of the table. Its family, inet, has chains of type nat since Linux 5.2.
const table = "tributary_redirect"

// nftables installs the rules with nft(8).
type nftables struct{ run runner }

func (nftables) name() string { return "nftables" }

// script returns one transaction: it creates the table so that it can be deleted, and then rebuilds it.
func (n nftables) script(r Rules) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n", table)
	n.chain(&b, r, "output", "nat", -100, "tcp", fmt.Sprintf("tcp dport %s redirect to :%d", set(r.Ports), r.To))
	if r.NoQUIC {
		n.chain(&b, r, "quic", "filter", 0, "udp", "udp dport 443 reject")
	}
	b.WriteString("}\n")
	return b.String()
}

// chain writes a chain whose last rule applies to the connections that are redirected.
func (nftables) chain(b *strings.Builder, r Rules, name, kind string, priority int, protocol, last string) {
	line := func(format string, args ...any) { fmt.Fprintf(b, "\t\t"+format+"\n", args...) }
	fmt.Fprintf(b, "\tchain %s {\n", name)
	line("type %s hook output priority %d; policy accept;", kind, priority)
	line("meta l4proto != %s return", protocol)
	if r.NoIPv6 {
		line("meta nfproto ipv6 return")
	}
	line("meta mark %#x return", Mark)
	if len(r.Over) == 0 {
		line("return")
	} else {
		line("oifname != %s return", set(quoted(r.Over)))
	}
	if len(r.Except) > 0 {
		line("meta skuid %s return", set(r.Except))
	}
	if len(r.Users) > 0 {
		line("meta skuid != %s return", set(r.Users))
	}
	leave := func(over string, all []netip.Prefix) {
		v4, v6 := families(all)
		if len(v4) > 0 {
			line("%sip daddr %s return", over, set(v4))
		}
		if len(v6) > 0 {
			line("%sip6 daddr %s return", over, set(v6))
		}
	}
	leave("", r.Leave)
	if len(r.Around) > 0 {
		leave("oifname "+set(quoted(r.Around))+" ", r.LeaveAround)
	}
	line("%s", last)
	b.WriteString("\t}\n")
}

func (n nftables) add(ctx context.Context, r Rules) (Installed, error) {
	_, err := n.run(ctx, n.script(r), "nft", "-f", "-")
	return Installed{n.name(), r.To, true, !r.NoIPv6}, err
}

func (n nftables) remove(ctx context.Context) error {
	if in, err := n.find(ctx); err != nil || in.By == "" { // a kernel without nftables has no rules in it
		return nil
	}
	_, err := n.run(ctx, "", "nft", "delete", "table", "inet", table)
	return err
}

var nftTo = regexp.MustCompile(`redirect to :(\d+)`)

func (n nftables) find(ctx context.Context) (Installed, error) {
	all, err := n.run(ctx, "", "nft", "list", "tables", "inet")
	if err != nil || !strings.Contains(all, table) {
		return Installed{}, err
	}
	rules, err := n.run(ctx, "", "nft", "-n", "list", "table", "inet", table)
	if err != nil {
		return Installed{}, err
	}
	return Installed{n.name(), port(nftTo, rules), true, !strings.Contains(rules, "nfproto ipv6 return")}, nil
}

// port returns the port that a pattern finds in text, or 0 if it finds none.
func port(pattern *regexp.Regexp, text string) uint16 {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseUint(m[1], 10, 16) // 0 for an error
	return uint16(n)
}

// set formats an anonymous set.
func set[T any](all []T) string {
	var parts []string
	for _, x := range all {
		parts = append(parts, fmt.Sprint(x))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func quoted(names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = strconv.Quote(n)
	}
	return all
}

func families(all []netip.Prefix) (v4, v6 []netip.Prefix) {
	for _, p := range all {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return v4, v6
}
