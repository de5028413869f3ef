package redirect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// chain is the name of the chain in the tables of both families: nat, and filter if QUIC is rejected.
const chain = "TRIBUTARY_REDIRECT"

// iptables installs the rules with iptables(8) and ip6tables(8), for kernels and systems without nftables. Each family
// is a transaction. Kernels without nat for IPv6 are common on phones: there only IPv4 is redirected.
type iptables struct{ run runner }

func (iptables) name() string { return "iptables" }

// script returns the input of iptables-restore --noflush. hooked means that OUTPUT already leads to the chain; six,
// that it is for IPv6.
func (iptables) script(r Rules, hooked, six bool) string {
	return part("nat", "tcp", r, hooked, six, func(over, who string) (rules []string) {
		for _, p := range r.Ports {
			rules = append(rules, fmt.Sprintf("-o %s -p tcp --dport %d %s-j REDIRECT --to-ports %d", over, p, who,
				r.To))
		}
		return rules
	})
}

// rejection is the same as script, for QUIC.
func (iptables) rejection(r Rules, hooked, six bool) string {
	return part("filter", "udp", r, hooked, six, func(over, who string) []string {
		return []string{fmt.Sprintf("-o %s -p udp --dport 443 %s-j REJECT", over, who)}
	})
}

// part returns the script for one table. last returns the last rules for an interface and a user.
func part(table, protocol string, r Rules, hooked, six bool, last func(over, who string) []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n:%s - [0:0]\n", table, chain) // creates or empties it
	line := func(format string, args ...any) { fmt.Fprintf(&b, "-A "+chain+" "+format+"\n", args...) }
	line("-m mark --mark %#x -j RETURN", Mark)
	for _, u := range r.Except {
		line("-m owner --uid-owner %s -j RETURN", u)
	}
	for _, p := range r.Leave {
		if p.Addr().Is6() == six {
			line("-d %s -j RETURN", p)
		}
	}
	for _, name := range r.Around {
		for _, p := range r.LeaveAround {
			if p.Addr().Is6() == six {
				line("-o %s -d %s -j RETURN", name, p)
			}
		}
	}
	who := []string{""}
	if len(r.Users) > 0 {
		who = nil
		for _, u := range r.Users {
			who = append(who, fmt.Sprintf("-m owner --uid-owner %s ", u))
		}
	}
	for _, name := range r.Over {
		for _, w := range who {
			for _, rule := range last(name, w) {
				line("%s", rule)
			}
		}
	}
	if !hooked {
		fmt.Fprintf(&b, "-A OUTPUT %s\n", hook(protocol))
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// hook returns the rule that leads to the chain.
func hook(protocol string) string { return "-p " + protocol + " -j " + chain }

// protocols are the protocols of the tables that have a chain.
var protocols = map[string]string{"nat": "tcp", "filter": "udp"}

// tools are the programs of one family.
type tools struct{ command, restore string }

var (
	tools4 = tools{"iptables", "iptables-restore"}
	tools6 = tools{"ip6tables", "ip6tables-restore"}
)

// call runs iptables, waiting for others that hold its lock.
func (i iptables) call(ctx context.Context, t tools, table, args string) (string, error) {
	return i.run(ctx, "", t.command, append([]string{"-w", "5", "-t", table}, strings.Fields(args)...)...)
}

func (i iptables) add(ctx context.Context, r Rules) (Installed, error) {
	if err := i.addFamily(ctx, tools4, r); err != nil {
		return Installed{}, err
	}
	if r.NoIPv6 {
		return Installed{i.name(), r.To, true, false}, i.removeFamily(ctx, tools6)
	}
	err6 := i.addFamily(ctx, tools6, r)
	return Installed{i.name(), r.To, true, err6 == nil}, nil
}

func (i iptables) addFamily(ctx context.Context, t tools, r Rules) error {
	restore := func(table string, script func(r Rules, hooked, six bool) string) error {
		_, err := i.call(ctx, t, table, "-C OUTPUT "+hook(protocols[table]))
		_, err = i.run(ctx, script(r, err == nil, t == tools6), t.restore, "--noflush", "-w", "5")
		return err
	}
	if err := restore("nat", i.script); err != nil {
		return err
	}
	if r.NoQUIC {
		return restore("filter", i.rejection)
	}
	return i.removeTable(ctx, t, "filter")
}

func (i iptables) remove(ctx context.Context) error {
	return errors.Join(i.removeFamily(ctx, tools4), i.removeFamily(ctx, tools6))
}

func (i iptables) removeFamily(ctx context.Context, t tools) error {
	return errors.Join(i.removeTable(ctx, t, "filter"), i.removeTable(ctx, t, "nat"))
}

func (i iptables) removeTable(ctx context.Context, t tools, table string) error {
	if _, err := i.call(ctx, t, table, "-S "+chain); err != nil {
		return nil // there is none, or no such tool
	}
	script, leads := "*"+table+"\n", hook(protocols[table])
	if _, err := i.call(ctx, t, table, "-C OUTPUT "+leads); err == nil {
		script += "-D OUTPUT " + leads + "\n"
	}
	script += fmt.Sprintf("-F %[1]s\n-X %[1]s\nCOMMIT\n", chain)
	_, err := i.run(ctx, script, t.restore, "--noflush", "-w", "5")
	return err
}

var iptablesTo = regexp.MustCompile(`--to-ports (\d+)`)

func (i iptables) find(ctx context.Context) (Installed, error) {
	in := Installed{}
	for _, t := range []tools{tools4, tools6} {
		rules, err := i.call(ctx, t, "nat", "-S "+chain)
		if err != nil {
			continue
		}
		in.By, in.To = i.name(), port(iptablesTo, rules)
		if t == tools4 {
			in.V4 = true
		} else {
			in.V6 = true
		}
	}
	return in, nil
}
