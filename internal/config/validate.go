package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// minWindow is the smallest reorder window in bytes with which two links can work side by side.
const minWindow = 1 << 20

const longestPattern = 64 // bytes

// Validate returns all problems of c in one error, one line each, or nil.
func (c Config) Validate() error { return (&File{Config: c}).Check() }

// problems returns everything that is wrong with the values.
func (c Config) problems() problems {
	var p problems
	p.address(c.Listen, "listen", c.AllowRemote)
	if c.Admin != "" {
		p.address(c.Admin, "admin", c.AllowRemote)
		if c.Admin == c.Listen && !strings.HasSuffix(c.Admin, ":0") {
			p.add("admin", "is %q as listen is: give them different ports", c.Admin)
			p.about("listen")
		}
	}
	p.gateway(c)
	p.local(c.SOCKS, "socks", "SOCKS5", map[string]string{
		"listen": c.Listen, "admin": c.Admin, "gateway": c.Gateway,
		"rpc": c.RPC,
	})
	p.rpc(c)

	if c.Control != "" && c.Control != AutoControl && !filepath.IsAbs(c.Control) {
		p.add("control", "%q is not an absolute path; \"auto\" lets Tributary choose, \"\" disables the socket",
			c.Control)
	}
	if s := c.AppSocket; s != "" && !filepath.IsAbs(s) && !strings.HasPrefix(s, "@") {
		p.add("app_socket", "%q is neither an absolute path nor an abstract name like @tributary", s)
	}
	for _, name := range c.AllowUsers {
		if _, err := lookUp(name); err != nil && name != everybody {
			p.add("allow_users", notAUser, name)
		}
	}
	for _, s := range c.AllowDestinations {
		if _, err := parseNetwork(s); err != nil {
			p.add("allow_destinations", `%q is not a network: write one like "10.0.0.0/8", or an address`, s)
		}
	}

	for i, name := range c.Links {
		p.linkName(name, "links")
		if IsPattern(name) {
			p.add("links", "%q is a pattern: name each link, or write enabled = true in a table [link.%q]", name, name)
		}
		if slices.Contains(c.Links[:i], name) {
			p.add("links", "%q is listed twice", name)
		}
		if e := c.Link[name].Enabled; e != nil && !*e {
			p.add("links", "%q is named, but [link.%s] says enabled = false", name, name)
			p.about(linkKey(name, "enabled"))
		}
	}
	goal := c.Goal
	for _, name := range slices.Sorted(maps.Keys(c.Link)) {
		if IsPattern(name) {
			p.pattern(name, c.Link[name])
		} else {
			p.linkName(name, toml.Key{"link", name}.String())
		}
		if via := c.Link[name].Via; via != "" {
			if _, err := parseVia(via); err != nil {
				p.add(linkKey(name, "via"), "%v", err)
			}
			if len(c.Link[name].DNS) > 0 {
				p.add(linkKey(name, "dns"),
					"has no effect with via, since the upstream proxy resolves names: remove it")
				p.about(linkKey(name, "via"))
			}
		}
		for _, s := range c.Link[name].DNS {
			if _, err := parseServer(s); err != nil {
				p.add(linkKey(name, "dns"), "%q is not an IP address, alone or with a port", s)
			}
		}
		if g := c.Link[name].Goal; g != "" && !slices.Contains(schedule.Goals(), g) {
			p.add(linkKey(name, "goal"), "%q is not one of %s", g, strings.Join(schedule.Goals(), ", "))
		} else if g != "" && g != schedule.Fastest {
			if goal != schedule.Fastest && goal != g {
				p.add(linkKey(name, "goal"),
					"is %q beside %q: a download has only one goal; links that it ignores are %q", g,
					goal, schedule.Fastest)
			}
			goal = g
		}
		if r := c.Link[name].Radio; r != "" {
			if _, err := energy.FindRadio(r); err != nil {
				p.add(linkKey(name, "radio"), "%v", err)
			}
		}
		if m := c.Link[name].Monthly; m < 0 {
			p.add(linkKey(name, "monthly"), "%d is negative; to exclude a link, set enabled = false", int64(m))
		}
		if r := c.Link[name].MaxRate; r != 0 && r < minRate {
			p.add(linkKey(name, "max_rate"), "%v is too slow, %v is the least; to exclude a link, set enabled = false",
				r, minRate)
		}
	}

	p.relay(c.Relay)
	p.oneOf(c.VPN, "vpn")
	p.oneOf(string(c.Spread), "spread")
	for _, host := range c.Sticky {
		if !isHost(host) {
			p.add("sticky",
				`%q is not a host: want an address, or a name like "example.com", which includes its subdomains`, host)
		}
	}
	for _, name := range c.SpreadPrograms {
		if name == "" || strings.ContainsAny(name, "/\x00") {
			p.add("spread_programs", `%q is not a program name: want the file name alone, like "steam"`, name)
		}
	}
	p.oneOf(c.Scheduler, "scheduler")
	p.oneOf(c.Goal, "goal")
	if c.MeteredPerPercent < 1 {
		p.add("metered_per_percent", "%v is too small: at least 1 byte", c.MeteredPerPercent)
	}
	p.oneOf(string(c.Slow), "slow")
	p.oneOf(c.LogLevel, "log_level")

	if c.TransferWindow < minWindow {
		p.add("transfer_window", "%v is too small: at least %v", c.TransferWindow, Bytes(minWindow))
	}
	if c.Budget < c.TransferWindow {
		p.add("budget", "%v is less than transfer_window, %v", c.Budget, c.TransferWindow)
		p.about("transfer_window")
	}
	if c.Threshold < 0 {
		p.add("threshold", "%d is negative", int64(c.Threshold))
	}
	if c.MaxConnectionsPerHost < 0 {
		p.add("max_connections_per_host", "%d is negative; 0 means any number", c.MaxConnectionsPerHost)
	}
	switch {
	case c.WaitForLink < 0:
		p.add("wait_for_link", "%v is negative", c.WaitForLink)
	case c.WaitForLink > 0 && c.WaitForLink < time.Millisecond: // a number without a unit is nanoseconds to TOML
		p.add("wait_for_link", `%v is too short: want a duration with a unit, like "60s"`, c.WaitForLink)
	}
	return p
}

// relay checks the [relay] table.
func (p *problems) relay(r Relay) {
	p.oneOf(r.Mode, "relay.mode")
	address := func(a string) bool {
		host, port, err := net.SplitHostPort(a)
		n, wrong := strconv.ParseUint(port, 10, 16)
		return err == nil && wrong == nil && n > 0 && isHost(host)
	}
	switch {
	case r.Address == "" && len(r.Others) > 0:
		p.add("relay.others", "needs relay.address: set it")
	case r.Address == "" && r.Mode != RelayOff:
		p.add("relay.address",
			"is missing: set it to the address of a relay that you paired with \"tributary relay join\"")
	case r.Address != "" && !address(r.Address):
		p.add("relay.address", "%q is not an address like relay.example.com:443", r.Address)
	}
	for _, a := range r.Others {
		if !address(a) {
			p.add("relay.others", "%q is not an address like relay.example.com:443", a)
		}
	}
	for _, host := range r.Except {
		if !isHost(host) {
			p.add("relay.except",
				`%q is not a host: want an address, or a name like "example.com", which includes its subdomains`, host)
		}
	}
}

// problems collects problems with the values.
type problems []Problem

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, Problem{keys: []string{key}, Text: fmt.Sprintf(format, args...)})
}

// about records that the last problem also concerns another key.
func (p *problems) about(key string) {
	last := &(*p)[len(*p)-1]
	last.keys = append(last.keys, key)
}

func (p *problems) oneOf(got, key string) {
	if allowed := Values(key); !slices.Contains(allowed, got) {
		p.add(key, "invalid value %q: want one of %s", got, strings.Join(allowed, ", "))
	}
}

// local checks an address that may serve only this machine and must have its own port.
func (p *problems) local(addr, key, what string, others map[string]string) {
	if addr == "" {
		return
	}
	p.address(addr, key, true)
	host, _, err := net.SplitHostPort(addr)
	if ip, ipErr := netip.ParseAddr(host); err == nil && ipErr == nil && !ip.Unmap().IsLoopback() {
		p.add(key, "%s can be reached from other machines, which %s does not serve: listen on 127.0.0.1", host, what)
	}
	for other, at := range others {
		if addr == at && !strings.HasSuffix(at, ":0") {
			p.add(key, "is %q as %s is: give them different ports", at, other)
			p.about(other)
		}
	}
}

// rpc checks the keys of RPC and its downloads.
func (p *problems) rpc(c Config) {
	p.local(c.RPC, "rpc", "RPC", map[string]string{"listen": c.Listen, "admin": c.Admin, "gateway": c.Gateway})
	for _, s := range c.RPCOrigins {
		if u, err := url.Parse(s); s != "null" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != s) {
			p.add("rpc_origins",
				`%q is not an origin: want one like "https://example.com", without a path, or "null" for files`, s)
		}
	}
	if c.DownloadDir != "" && !filepath.IsAbs(c.DownloadDir) {
		p.add("download_dir", "%q is not an absolute path", c.DownloadDir)
	}
	if c.MaxConcurrent < 1 {
		p.add("max_concurrent", "is %d: want at least 1", c.MaxConcurrent)
	}
}

// gateway checks the keys of the gateway, which serves only this machine.
func (p *problems) gateway(c Config) {
	p.local(c.Gateway, "gateway", "the gateway", map[string]string{"listen": c.Listen, "admin": c.Admin})
	for _, s := range c.GatewayHosts {
		if u, err := url.Parse("https://" + s); err != nil || u.Host != s || u.User != nil || u.Hostname() == "" {
			p.add("gateway_hosts", `%q is not a host: want a name like "pypi.org", with or without a port`, s)
		}
	}
}

// address requires a literal address or localhost, since an empty host would listen on all addresses.
func (p *problems) address(addr, key string, remote bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		p.add(key, `%q is not an address: want host:port, like "127.0.0.1:8080"`, addr)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		p.add(key, "%q is not a port number", port)
	}
	if host == "localhost" {
		return
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		p.add(key, "%q is not an IP address: want one, or localhost", host)
	case !ip.Unmap().IsLoopback() && !remote:
		p.add(key, "%s would let other machines use your links: "+
			"listen on 127.0.0.1, or set allow_remote = true in the file", host)
	}
}

// isHost reports whether a text is an address or has the form of a host name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || strings.ContainsFunc(label, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}) {
			return false
		}
	}
	return len(s) <= 253
}

// pattern checks the name of a table that stands for several links.
func (p *problems) pattern(name string, l Link) {
	key := toml.Key{"link", name}.String()
	bad := len(name) > longestPattern || strings.ContainsAny(name, "/: \t\n")
	for one := range strings.SplitSeq(name, alternatives) {
		_, err := path.Match(one, "")
		bad = bad || err != nil || one == ""
	}
	if bad {
		p.add(key, `%q is not a pattern: write one like "rmnet*", of at most %d bytes`, name, longestPattern)
	}
	if l.Via != "" {
		p.add(linkKey(name, "via"), "needs a link's own name: %q stands for several links", name)
	}
}

// linkName checks an interface name against the rules of Linux (IFNAMSIZ, dev_valid_name).
func (p *problems) linkName(name, key string) {
	if name == "" || len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n") {
		p.add(key, "%q is not an interface name", name)
	}
}
