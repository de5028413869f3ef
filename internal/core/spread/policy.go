package spread

import (
	"slices"
	"strings"
)

// Mode selects what is spread.
type Mode string

// The modes.
const (
	Off  Mode = "off"  // nothing, and sessions stick to no link; also the zero value
	Auto Mode = "auto" // programs that are not browsers, and redirected ones that are named
	All  Mode = "all"  // all programs, browsers too
)

// Policy is the user's choice.
type Policy struct {
	Mode Mode
	// Sticky lists hosts that are never spread, each including its subdomains.
	Sticky []string
}

// Flow describes a connection or a request. Flows that agree in User, Program and Host belong together.
type Flow struct {
	User    string // "" = not known
	Program string // the User-Agent of a CONNECT or of a request, or the path of a redirected program; "" = not known
	Host    string // name or address, in lower case
	Domain  string // registrable domain of Host, or Host
	// Redirected says that a firewall rule sent it here: only programs that the user named are known.
	Redirected bool
	// Unmetered says that only links that cost nothing may carry it.
	Unmetered bool
	// Exposed says that networks can read what it carries: trusted links go first, and the others carry it only if none
	// of them is up.
	Exposed bool
	// Avoid names a link that must not carry it, "" for none.
	Avoid string
	// Relayed says that it goes through a relay, which uses further links as they appear.
	Relayed bool
}

// browser is the start of every browser's User-Agent.
const browser = "Mozilla/"

// spreads reports whether simultaneous connections of f may take several links.
func (p Policy) spreads(f Flow) bool {
	switch {
	case f.Relayed:
		return true
	case p.Mode == All:
		return !p.sticks(f.Host)
	case p.Mode != Auto, p.sticks(f.Host), strings.HasPrefix(f.Program, browser):
		return false
	}
	return !f.Redirected || f.Program != ""
}

// sticks reports whether the user wants all connections to a host over one link.
func (p Policy) sticks(host string) bool { return Names(p.Sticky, host) }

// Names reports whether a list of hosts, each including its subdomains, contains host. All are in lower case, without a
// trailing dot.
func Names(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) })
}
