package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"    // it works, but not as well as it could, or not as one might expect
	Fail    Verdict = "fail"    // Tributary, or a link, does not work until this is fixed
	Skipped Verdict = "skipped" // cannot be checked here
)

// Check is the result of checking one item.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`         // finding, for a person to read
	Fix     string  `json:"fix,omitempty"` // command or setting that fixes it
}

// Judge returns all checks, in display order.
func Judge(f *Facts) []Check {
	var all []Check
	for _, judge := range []func(*Facts) []Check{
		configuration, kernel, links, perLink, gateways, tunnel, ports, environment, files, memory, clock, notDivided,
	} {
		all = append(all, guarded(judge, f)...)
	}
	return all
}

// guarded prevents a fault of one check from hiding the others.
func guarded(judge func(*Facts) []Check, f *Facts) (all []Check) {
	defer func() {
		if p := recover(); p != nil {
			all = []Check{{
				Name: "doctor", Verdict: Skipped,
				Found: fmt.Sprintf("a check failed unexpectedly; please report this: %v", p),
			}}
		}
	}()
	return judge(f)
}

// Failed reports whether one of the checks failed.
func Failed(all []Check) bool {
	return slices.ContainsFunc(all, func(c Check) bool { return c.Verdict == Fail })
}

func configuration(f *Facts) []Check {
	c := Check{Name: "configuration", Verdict: OK, Found: "no file: the defaults apply"}
	switch {
	case f.ConfigError != nil:
		c.Verdict, c.Found, c.Fix = Fail, f.ConfigError.Error(), "edit it, then: tributary config check"
	case f.ConfigFile != "":
		c.Found = f.ConfigFile
	}
	return []Check{c}
}

// kernel checks the version: since Linux 5.7, an unprivileged process may bind sockets to interfaces.
func kernel(f *Facts) []Check {
	c := Check{Name: "kernel", Verdict: OK, Found: fmt.Sprintf("Linux %d.%d", f.Kernel[0], f.Kernel[1])}
	switch old := f.Kernel[0] < 5 || f.Kernel[0] == 5 && f.Kernel[1] < 7; {
	case f.Kernel == [2]int{}:
		c.Verdict, c.Found = Skipped, "the version is unknown"
	case old && !f.NetRaw:
		c.Verdict = Fail
		c.Found += ": before Linux 5.7, binding sockets to links needs CAP_NET_RAW"
		c.Fix = "setcap cap_net_raw+ep " + quote(f.Executable)
	case old:
		c.Found += ", with CAP_NET_RAW"
	default:
		c.Found += ": sockets can be bound to links without privileges"
	}
	return []Check{c}
}

func links(f *Facts) []Check {
	c := Check{Name: "links", Verdict: OK}
	var names []string
	for _, l := range f.Used() {
		name := l.Link.Name
		if l.Link.Terms.Metered {
			name += " (metered)"
		}
		names = append(names, name)
	}
	switch {
	case f.LinksError != nil:
		c.Verdict, c.Found = Fail, f.LinksError.Error()
	case len(names) == 0:
		c.Verdict, c.Found, c.Fix = Fail, "no interface is used", "tributary links    # explains why, for each"
		if s := f.System; s.Link.Name != "" && s.Link.Name != "lo" {
			c.Found += fmt.Sprintf(", though the system sends over %s: %s", s.Link.Name, s.Reason)
			c.Fix = "tributary serve --link " + quote(s.Link.Name)
		}
	case len(names) == 1:
		c.Verdict, c.Found = Warn, "only "+names[0]+": with one link, downloads are as fast as without Tributary"
		c.Fix = "connect a second one, then: tributary links"
	default:
		c.Found = strings.Join(names, ", ")
	}
	return []Check{c}
}

func perLink(f *Facts) (all []Check) {
	for _, l := range f.Used() {
		if l.Link.Via != "" {
			all = append(all, upstream(l))
			continue
		}
		all = append(all, bind(f, l), route(l), reversePath(f, l), names(f, l), family(l))
	}
	return all
}

// upstream checks a link that leads through an upstream proxy.
func upstream(l Link) Check {
	c := Check{Name: "upstream " + l.Link.Name, Verdict: OK, Found: l.Link.Via + " accepts connections"}
	switch {
	case errors.Is(l.Upstream, errOffline):
		c.Verdict, c.Found = Skipped, l.Upstream.Error()
	case l.Upstream != nil:
		c.Verdict, c.Found = Fail, l.Upstream.Error()
		c.Fix = fmt.Sprintf("start that proxy, or correct via in [link.%s] of the configuration", l.Link.Name)
	}
	return c
}

func bind(f *Facts, l Link) Check {
	c := Check{Name: "bind " + l.Link.Name, Verdict: OK, Found: "a socket can be bound to it"}
	if l.BindError != nil {
		c.Verdict, c.Found, c.Fix = Fail, l.BindError.Error(), "tributary links    # is it still there?"
		if errors.Is(l.BindError, fs.ErrPermission) {
			c.Fix = "setcap cap_net_raw+ep " + quote(f.Executable)
		}
	}
	return c
}

func route(l Link) Check {
	name := l.Link.Name
	c := Check{Name: "route " + name, Verdict: OK, Found: "a bound socket has a route"}
	if l.RouteError == nil {
		return c
	}
	c.Verdict, c.Found = Fail, fmt.Sprintf("a socket bound to it has no route: %v", l.RouteError)
	via := "GATEWAY"
	if len(l.Gateways) > 0 {
		via = l.Gateways[0].String()
	}
	c.Fix = fmt.Sprintf("ip route add default via %s dev %s metric 600", via, quote(name))
	return c
}

// reversePath checks the filter: with strict filtering (RFC 3704 section 2.2) the kernel drops answers that arrive over
// another link than the one that it would itself choose for their sender. A value of 2 for the interface takes
// precedence over 1 for all (Documentation/networking/ip-sysctl.rst).
func reversePath(f *Facts, l Link) Check {
	name := l.Link.Name
	c := Check{Name: "rp_filter " + name, Verdict: OK, Found: "responses over it are accepted"}
	switch _, four := l.Link.Addr(false); {
	case !four:
		c.Found = "it has no IPv4 address, so nothing is filtered"
	case l.RPFilter < 0:
		c.Verdict, c.Found = Skipped, "rp_filter cannot be read"
	case l.RPFilter == 1 && !l.Reverse:
		c.Verdict = Fail
		c.Found = "strict reverse path filtering drops responses over it, since the system prefers " +
			f.System.Link.Name
		if f.System.Link.Name == "" {
			c.Found = "strict reverse path filtering drops responses over it, since the system itself has no default route"
		}
		c.Fix = "sysctl -w " + quote("net.ipv4.conf."+strings.ReplaceAll(name, ".", "/")+".rp_filter=2")
	}
	return c
}

func names(f *Facts, l Link) Check {
	name := l.Link.Name
	c := Check{Name: "dns " + name, Verdict: OK}
	var servers []string
	for _, s := range l.Servers.Addrs {
		servers = append(servers, s.Addr().String())
	}
	c.Found = strings.Join(servers, ", ") + " (" + l.Servers.From + ")"
	setting := server(f, l)
	switch {
	case len(servers) == 0 && l.DNSError != nil:
		c.Verdict, c.Found, c.Fix = Fail, l.DNSError.Error(), setting
	// net.DNSError keeps only the text
	case l.DNSError != nil && strings.Contains(l.DNSError.Error(), unix.EPERM.Error()):
		c.Verdict, c.Found = Fail,
			c.Found+" cannot be queried: a firewall rule of this machine rejects it: "+l.DNSError.Error()
		c.Fix = "nft list ruleset    # as root: look for reject and drop"
	case l.DNSError != nil:
		c.Verdict, c.Found, c.Fix = Fail, c.Found+" does not answer over this link: "+l.DNSError.Error(), setting
	case l.Servers.Stub:
		c.Verdict = Warn
		c.Found += " is a resolver on this machine, which may send queries over any link: its answers may suit another link"
		c.Fix = setting
	case l.DNSTook > 0:
		c.Found += fmt.Sprintf(" answers in %d ms", l.DNSTook.Milliseconds())
	}
	return c
}

// server returns the command that sets the DNS server of a link.
func server(f *Facts, l Link) string {
	address, hint := "ADDRESS", "    # of a DNS server that it reaches"
	if l.Router.IsValid() {
		address, hint = l.Router.String(), ""
	}
	setting := fmt.Sprintf("dns = [%q]", address)
	if l.Table || f.ConfigPath == "" {
		return fmt.Sprintf("put  %s  into [link.%s] of the configuration%s", setting, l.Link.Name, hint)
	}
	table := "[link." + l.Link.Name + "]"
	if !of(l.Link.Name, bare) {
		table = fmt.Sprintf("[link.%q]", l.Link.Name)
	}
	return fmt.Sprintf(`mkdir -p %s && printf '\n%%s\n%%s\n' %s %s >> %s%s`, quote(filepath.Dir(f.ConfigPath)),
		quote(table), quote(setting),
		quote(f.ConfigPath), hint)
}

// bare are the characters allowed in TOML keys without quotes.
const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// of reports whether s consists only of these characters.
func of(s, chars string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(chars, r) })
}

// quote quotes s as one word for a POSIX shell.
func quote(s string) string {
	if s != "" && of(s, bare+"/.:=,@+") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func family(l Link) Check {
	c := Check{Name: "families " + l.Link.Name, Verdict: OK}
	_, four := l.Link.Addr(false)
	_, six := l.Link.Addr(true)
	switch {
	case four && six:
		c.Found = "IPv4 and IPv6"
	case four && slices.ContainsFunc(l.Link.Prefixes, func(p netip.Prefix) bool { return p.Addr().Is6() }):
		c.Found = "IPv4 only: it has an IPv6 address, but no default route for it"
	case four:
		c.Found = "IPv4 only: IPv6-only hosts cannot be reached over it"
	case six:
		c.Verdict, c.Found = Warn, "IPv6 only: IPv4-only hosts cannot be reached over it"
	default:
		c.Verdict, c.Found = Skipped, "no address"
	}
	return c
}

// gateways looks for links that share a router: they share the line behind it, too.
func gateways(f *Facts) (all []Check) {
	first := map[netip.Addr]Link{}
	for _, l := range f.Used() {
		for _, g := range l.Gateways {
			o, ok := first[g]
			switch {
			case !ok:
				first[g] = l
			case o.Link.Name != l.Link.Name && sameNetwork(o.Link, l.Link):
				all = append(all, Check{
					Name: "router", Verdict: Warn,
					Found: fmt.Sprintf("%s and %s lead to the same router (%v): together they are only as fast as that router's connection",
						o.Link.Name, l.Link.Name, g),
					Fix: "connect to a second network, for example by tethering a phone",
				})
			}
		}
	}
	return all
}

func sameNetwork(a, b link.Link) bool {
	return slices.ContainsFunc(a.Prefixes, func(p netip.Prefix) bool { return slices.Contains(b.Prefixes, p) })
}

// tunnel reports whether downloads follow a VPN that carries everything the system sends, or bypass it.
func tunnel(f *Facts) []Check {
	s := f.System
	switch {
	case s.Link.VPN && s.Use:
		return []Check{{
			Name: "vpn", Verdict: OK,
			Found: fmt.Sprintf("the system sends everything through %s, and so does Tributary; the links beneath it are not used (vpn = \"follow\")", s.Link.Name),
		}}
	case s.Link.VPN:
		return []Check{{
			Name: "vpn", Verdict: Warn,
			Found: fmt.Sprintf("the system sends everything through %s, which Tributary may not use: %s", s.Link.Name,
				s.Reason),
			Fix: "tributary serve --link " + quote(s.Link.Name) + "    # or --vpn around, to bypass it",
		}}
	case s.Link.Name == "" || s.Use || s.Link.Kind != link.KindTunnel && s.Link.Kind != link.KindPPP:
		return nil
	}
	return []Check{{
		Name: "vpn", Verdict: Warn,
		Found: fmt.Sprintf("the system sends everything through %s; Tributary bypasses it, over %s (vpn = \"around\")",
			s.Link.Name, usedNames(f)),
		Fix: "tributary serve --vpn follow    # to use the VPN instead",
	}}
}

func usedNames(f *Facts) string {
	var all []string
	for _, l := range f.Used() {
		all = append(all, l.Link.Name)
	}
	if len(all) == 0 {
		return "no link"
	}
	return strings.Join(all, " and ")
}

func ports(f *Facts) (all []Check) {
	for _, p := range f.Ports {
		c := Check{Name: "port " + p.Flag, Verdict: OK, Found: p.Addr.String() + " is free"}
		switch {
		case p.Running:
			c.Found = p.Addr.String() + ": Tributary is running"
		case p.Err != nil && p.Holder.Name == systemd:
			c.Verdict, c.Found = Fail, fmt.Sprintf("systemd keeps %v open for a service that is not running", p.Addr)
			c.Fix = "systemctl list-sockets    # names the service; systemctl status SERVICE says why it does not run"
		case p.Err != nil && p.Holder != Holder{}:
			c.Verdict, c.Found = Fail, fmt.Sprintf("%v is taken by process %d (%s)", p.Addr, p.Holder.PID,
				p.Holder.Name)
			c.Fix = "stop it, or: tributary serve --" + p.Flag + " " + netip.AddrPortFrom(p.Addr.Addr(),
				p.Addr.Port()+1).String()
		case p.Err != nil:
			c.Verdict, c.Found = Fail, p.Err.Error()
			c.Fix = "tributary serve --" + p.Flag + " " + netip.AddrPortFrom(p.Addr.Addr(), p.Addr.Port()+1).String()
		}
		all = append(all, c)
	}
	return all
}

// wantFiles is the number of open files that 512 clients with two links each may need.
const wantFiles = 4096

func files(f *Facts) []Check {
	c := Check{Name: "open files", Verdict: OK, Found: fmt.Sprintf("up to %d", f.FilesHard)}
	switch {
	case f.FilesHard == 0:
		c.Verdict, c.Found = Skipped, "the limit is unknown"
	case f.FilesHard < wantFiles:
		c.Verdict, c.Found = Warn, fmt.Sprintf("at most %d; many simultaneous clients need more", f.FilesHard)
		c.Fix = fmt.Sprintf("ulimit -n %d    # as root; in a systemd unit: LimitNOFILE=%d", wantFiles, wantFiles)
	}
	return []Check{c}
}

func memory(f *Facts) []Check {
	c := Check{
		Name: "memory", Verdict: OK,
		Found: fmt.Sprintf("budget %d MiB of %d MiB %s", f.Budget>>20, f.Memory>>20, f.MemoryFrom),
	}
	switch {
	case f.Memory == 0:
		c.Verdict, c.Found = Skipped, "the machine's memory is unknown"
	case f.Budget > f.Memory/2:
		c.Verdict = Warn
		c.Found += ": more than half"
		c.Fix = fmt.Sprintf("put  budget = \"%dMiB\"  into the configuration", max(1, f.Memory/8>>20))
	}
	return []Check{c}
}

// clock checks the time: certificates are valid only at certain times.
func clock(f *Facts) []Check {
	c := Check{Name: "clock", Verdict: OK, Found: f.Now.Format(time.RFC3339)}
	if f.Now.Year() < 2025 || f.Now.Year() > 2100 {
		c.Verdict, c.Found, c.Fix = Fail, c.Found+": server certificates will seem to be invalid",
			"timedatectl set-ntp true"
	}
	return []Check{c}
}

// notDivided explains behaviour that users may mistake for a fault (R164).
func notDivided(*Facts) []Check {
	return []Check{{
		Name: "not divided", Verdict: OK,
		Found: "https through the proxy uses one link per connection (tributary get and tributary run use all); QUIC bypasses proxies",
	}}
}

// plain strips Go's wrapping from the cause of a network error.
func plain(err error) error {
	if op := new(net.OpError); errors.As(err, &op) {
		return op.Err
	}
	return err
}
