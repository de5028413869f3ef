package link

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// systemFiles name the DNS servers of the system, best first: the first two list the servers behind a local stub.
var systemFiles = []string{
	"/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf", "/etc/resolv.conf",
}

const (
	dnsPort    = 53
	maxServers = 8       // asked at once
	maxFile    = 1 << 16 // bytes read of a resolv.conf
)

// ErrNoServer says that no DNS server is known for a link.
var ErrNoServer = errors.New("no DNS server is known")

// Servers are the DNS servers of a link.
type Servers struct {
	Addrs []netip.AddrPort
	Stub  bool   // a resolver of this machine, which chooses its link itself
	From  string // the file that names them, or "configuration"

	over map[netip.AddrPort]*Link // interface over which a server is asked; nil = the system chooses
}

// Servers returns the servers to ask for names over l. A server whose address belongs to another interface, such as a
// VPN, is asked over that interface or not at all. A stub is asked without being bound to l, and only where any link
// may be asked.
func (r *Resolver) Servers(l Link) (Servers, error) {
	if len(l.DNS) > 0 {
		return r.reachable(l, l.DNS, "configuration")
	}
	files := r.files
	if files == nil {
		files = systemFiles
	}
	var stubs Servers
	for _, name := range files {
		real, stub := readServers(name)
		if len(real) > 0 {
			return r.reachable(l, real, name)
		}
		if len(stub) > 0 && stubs.From == "" {
			stubs.From, stubs.Stub = name, true
		}
		stubs.Addrs = append(stubs.Addrs, stub...)
	}
	switch {
	case len(stubs.Addrs) == 0:
		return Servers{}, fmt.Errorf("%w for %s; set `dns = [\"ADDRESS\"]` in [link.%s] of the configuration",
			ErrNoServer, l.Name, l.Name)
	case !r.AllLinksAllowed:
		return Servers{},
			fmt.Errorf("%w for %s: only the local resolver %v, which may send queries over another link; "+
				"set `dns = [\"ADDRESS\"]` in [link.%s] of the configuration", ErrNoServer, l.Name, stubs.Addrs[0].Addr(),
				l.Name)
	}
	stubs.Addrs = stubs.Addrs[:min(len(stubs.Addrs), maxServers)]
	return stubs, nil
}

// reachable keeps the servers that can be asked on l's behalf, and completes link-local ones with the link as zone.
func (r *Resolver) reachable(l Link, servers []netip.AddrPort, from string) (Servers, error) {
	found := Servers{From: from, over: map[netip.AddrPort]*Link{}}
	for _, s := range servers {
		a := s.Addr().Unmap()
		over := l
		switch {
		case a.IsLinkLocalUnicast():
			if z := a.Zone(); z != "" && z != l.Name && z != strconv.Itoa(l.Index) {
				continue // a server of another link
			}
			if a.Is6() {
				a = a.WithZone(l.Name)
			}
		case r.Over != nil:
			o, local, err := r.Over(l, a)
			if err != nil || local && !r.AllLinksAllowed {
				continue
			}
			over = o
		}
		if _, has := l.Addr(a.Is6()); over.Name == l.Name && !has && !a.IsLinkLocalUnicast() {
			continue
		}
		if p := netip.AddrPortFrom(a, s.Port()); found.over[p] == nil && len(found.Addrs) < maxServers {
			found.Addrs = append(found.Addrs, p)
			found.over[p] = &over
		}
	}
	if len(found.Addrs) == 0 {
		return Servers{},
			fmt.Errorf("%w that may be asked for %s (%v are of another address family, or belong to another interface); "+
				"set `dns = [\"ADDRESS\"]` in [link.%s] of the configuration", ErrNoServer, l.Name, servers, l.Name)
	}
	return found, nil
}

// readServers returns the name servers of a resolv.conf, with loopback ones separate; none if it cannot be read.
func readServers(name string) (real, stub []netip.AddrPort) { return parseServers(readConf(name)) }

// readConf returns the beginning of a resolv.conf, "" if it cannot be read.
func readConf(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(b)
}

// parseServers reads the nameserver lines of resolv.conf(5).
func parseServers(conf string) (real, stub []netip.AddrPort) {
	for _, line := range strings.Split(conf, "\n") {
		w := strings.Fields(line)
		if len(w) < 2 || w[0] != "nameserver" {
			continue
		}
		a, err := netip.ParseAddr(w[1])
		if err != nil {
			continue
		}
		p := netip.AddrPortFrom(a.Unmap(), dnsPort)
		if p.Addr().IsLoopback() || p.Addr().IsUnspecified() {
			stub = append(stub, p)
		} else {
			real = append(real, p)
		}
	}
	return real, stub
}
