package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minWindow is the least reorder window that lets two links work side by side.
const minWindow = 1 << 20

// Validate returns everything that is wrong with c in one error, a line each, or nil.
func (c Config) Validate() error {
	var p problems
	p.address(c.Listen, "listen", c.AllowRemote)
	if c.Admin != "" {
		p.address(c.Admin, "admin", c.AllowRemote)
		if c.Admin == c.Listen && !strings.HasSuffix(c.Admin, ":0") {
			p.add("admin and listen are both %q: give them different ports", c.Admin)
		}
	}

	if c.Control != "" && c.Control != AutoControl && !filepath.IsAbs(c.Control) {
		p.add("control: %q is no absolute path; \"auto\" leaves the place to Tributary, \"\" means none", c.Control)
	}
	if _, err := c.Users(os.Getuid()); err != nil {
		p = append(p, err)
	}
	for _, s := range c.AllowDestinations {
		if _, err := parseNetwork(s); err != nil {
			p.add(`allow_destinations: %q is no network: write one like "10.0.0.0/8", or an address`, s)
		}
	}

	for i, name := range c.Links {
		p.linkName(name, "links")
		if slices.Contains(c.Links[:i], name) {
			p.add("links: %q is named twice", name)
		}
		if e := c.Link[name].Enabled; e != nil && !*e {
			p.add("links: %q is named, but [link.%s] says enabled = false", name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Link)) {
		p.linkName(name, "[link.NAME]")
		for _, s := range c.Link[name].DNS {
			if _, err := parseServer(s); err != nil {
				p.add("[link.%s] dns: %q is no IP address, alone or with a port", name, s)
			}
		}
		if r := c.Link[name].MaxRate; r != 0 && r < minRate {
			p.add("[link.%s] max_rate: %v is too slow, %v is the least; enabled = false leaves the link alone", name, r, minRate)
		}
	}

	p.oneOf(c.Scheduler, "scheduler", Schedulers()...)
	p.oneOf(c.Alg3, "alg3", "guarded", "literal")
	p.oneOf(c.Continuation, "continuation", "cursor", "restart")
	p.oneOf(c.LogLevel, "log_level", "debug", "info", "warn", "error")

	if c.TransferWindow < minWindow {
		p.add("transfer_window: %v is too small: at least %v", c.TransferWindow, Bytes(minWindow))
	}
	if c.Budget < c.TransferWindow {
		p.add("budget: %v is less than transfer_window, %v", c.Budget, c.TransferWindow)
	}
	if c.Threshold < 0 {
		p.add("threshold: %d is negative", int64(c.Threshold))
	}
	switch {
	case c.WaitForLink < 0:
		p.add("wait_for_link: %v is negative", c.WaitForLink)
	case c.WaitForLink > 0 && c.WaitForLink < time.Millisecond: // a number without a unit is nanoseconds to TOML
		p.add(`wait_for_link: %v is too short: write it with a unit, like "60s"`, c.WaitForLink)
	}
	return errors.Join(p...)
}

// problems collects what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) oneOf(got, key string, allowed ...string) {
	if !slices.Contains(allowed, got) {
		p.add("%s: %q is none of %s", key, got, strings.Join(allowed, ", "))
	}
}

// address demands a literal address, since an empty host would listen on all of them.
func (p *problems) address(addr, key string, remote bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		p.add(`%s: %q is no address: write host:port, like "127.0.0.1:8080"`, key, addr)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		p.add("%s: %q is no port number", key, port)
	}
	if host == "localhost" {
		return
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		p.add("%s: %q is no IP address: write one out, or localhost", key, host)
	case !ip.Unmap().IsLoopback() && !remote:
		p.add("%s: %s can be reached from other machines, which could use your links: "+
			"listen on 127.0.0.1 or set allow_remote = true in the file", key, host)
	}
}

// linkName checks what Linux demands of an interface name (IFNAMSIZ, dev_valid_name).
func (p *problems) linkName(name, key string) {
	if name == "" || len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n") {
		p.add("%s: %q is no interface name", key, name)
	}
}
