package redirect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// chain is the name of the chain in the nat tables of both families.
const chain = "TRIBUTARY_REDIRECT"

// iptables keeps the rules by iptables(8) and ip6tables(8), for kernels and systems without nftables. Each family is a
// transaction. Kernels without nat for IPv6 are common on phones: there only IPv4 is redirected.
type iptables struct{ run runner }

func (iptables) name() string { return "iptables" }

// script is the input of iptables-restore --noflush. hooked says that OUTPUT leads to the chain already.
func (iptables) script(r Rules, hooked, six bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*nat\n:%s - [0:0]\n", chain) // makes it, or empties it
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
		for _, p := range r.Ports {
			for _, w := range who {
				line("-o %s -p tcp --dport %d %s-j REDIRECT --to-ports %d", name, p, w, r.To)
			}
		}
	}
	if !hooked {
		fmt.Fprintf(&b, "-A OUTPUT %s\n", hook)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

const hook = "-p tcp -j " + chain

// tools are the programs of one family.
type tools struct{ command, restore string }

var (
	tools4 = tools{"iptables", "iptables-restore"}
	tools6 = tools{"ip6tables", "ip6tables-restore"}
)

// call runs iptables, waiting for others that hold its lock.
func (i iptables) call(ctx context.Context, t tools, args string) (string, error) {
	return i.run(ctx, "", t.command, append([]string{"-w", "5", "-t", "nat"}, strings.Fields(args)...)...)
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
	_, err := i.call(ctx, t, "-C OUTPUT "+hook)
	_, err = i.run(ctx, i.script(r, err == nil, t == tools6), t.restore, "--noflush", "-w", "5")
	return err
}

func (i iptables) remove(ctx context.Context) error {
	return errors.Join(i.removeFamily(ctx, tools4), i.removeFamily(ctx, tools6))
}

func (i iptables) removeFamily(ctx context.Context, t tools) error {
	if _, err := i.call(ctx, t, "-S "+chain); err != nil {
		return nil // there is none, or no such tool
	}
	script := "*nat\n"
	if _, err := i.call(ctx, t, "-C OUTPUT "+hook); err == nil {
		script += "-D OUTPUT " + hook + "\n"
	}
	script += fmt.Sprintf("-F %[1]s\n-X %[1]s\nCOMMIT\n", chain)
	_, err := i.run(ctx, script, t.restore, "--noflush", "-w", "5")
	return err
}

var iptablesTo = regexp.MustCompile(`--to-ports (\d+)`)

func (i iptables) find(ctx context.Context) (Installed, error) {
	in := Installed{}
	for _, t := range []tools{tools4, tools6} {
		rules, err := i.call(ctx, t, "-S "+chain)
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
