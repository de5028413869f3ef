package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	maxSearch = 16 // domains
	maxNdots  = 15 // as in resolv.conf(5)

	maxDomain = 253 // bytes of a name (RFC 1035 section 2.3.4), as written without the final dot
)

// inFile returns the addresses of a family that /etc/hosts has for a name, and whether it has the name at all.
func inFile(ctx context.Context, f family, name string) (addrs []netip.Addr, known bool) {
	addrs, err := noServers.LookupNetIP(ctx, f.network(), name)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	_, other := errors.AsType[*net.AddrError](err) // it has the name with addresses of the other family
	return addrs, err == nil || other
}

// hostsFileSays reports whether /etc/hosts has an address for a name.
func hostsFileSays(name string, a netip.Addr) bool {
	f := v4
	if a.Is6() {
		f = v6
	}
	addrs, _ := inFile(context.Background(), f, strings.ToLower(name))
	return slices.Contains(addrs, a)
}

var errNoServers = errors.New("no DNS server is asked")

// noServers knows the names in /etc/hosts only.
var noServers = &net.Resolver{
	PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoServers },
}

// searched returns the absolute names, without the final dot, that a name without one may stand for, in the order in
// which resolv.conf(5) says that programs ask for them.
func (r *Resolver) searched(name string) []string {
	files := r.files
	if files == nil {
		files = systemFiles
	}
	if len(files) == 0 {
		return []string{name}
	}
	domains, ndots := parseSearch(readConf(files[len(files)-1])) // programs read /etc/resolv.conf
	if domains == nil {
		if host, err := os.Hostname(); err == nil {
			if _, domain, ok := strings.Cut(host, "."); ok {
				domains = []string{domain}
			}
		}
	}
	return completions(name, domains, ndots)
}

// parseSearch returns the search domains of a resolv.conf, nil if it does not mention any, and ndots.
func parseSearch(conf string) (domains []string, ndots int) {
	ndots = 1
	for _, line := range strings.Split(conf, "\n") {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		switch w[0] {
		case "search", "domain": // the last one counts
			domains = []string{}
			for _, d := range w[1:] {
				if d = strings.ToLower(strings.Trim(d, ".")); d != "" && len(domains) < maxSearch {
					domains = append(domains, d)
				}
			}
		case "options":
			for _, o := range w[1:] {
				if n, ok := strings.CutPrefix(o, "ndots:"); ok {
					if v, err := strconv.ParseUint(n, 10, 16); err == nil {
						ndots = int(min(v, maxNdots))
					}
				}
			}
		}
	}
	return domains, ndots
}

// completions returns the names to ask for. A name with ndots dots is probably absolute already.
func completions(name string, domains []string, ndots int) []string {
	names := make([]string, 0, len(domains)+1)
	for _, d := range domains {
		if long := name + "." + d; len(long) <= maxDomain {
			names = append(names, long)
		}
	}
	if strings.Count(name, ".") >= ndots {
		return append([]string{name}, names...)
	}
	return append(names, name)
}
