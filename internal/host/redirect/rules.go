package redirect

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Mark is the mark (SO_MARK) of the sockets that are never redirected: the proxy's own. It avoids the bits that
// Tailscale and Kubernetes use. Its bit 0x40000 is PERMISSION_NETWORK of Android's netd: without it, only root may send
// over a network in the background, such as mobile data next to Wi-Fi.
const Mark = 0x740000

// Users is a range of user IDs, both ends included.
type Users struct{ First, Last uint32 }

// ParseUsers parses "1000" or "10000-19999".
func ParseUsers(s string) (Users, error) {
	first, last, ranged := strings.Cut(s, "-")
	a, err := strconv.ParseUint(first, 10, 32)
	b := a
	if err == nil && ranged {
		b, err = strconv.ParseUint(last, 10, 32)
	}
	if err != nil || b < a || b == math.MaxUint32 { // stands for no user, see chown(2)
		return Users{}, fmt.Errorf("%q is neither a user ID nor a range of them, like 1000 or 10000-19999", s)
	}
	return Users{uint32(a), uint32(b)}, nil
}

func (u Users) String() string {
	if u.First == u.Last {
		return strconv.FormatUint(uint64(u.First), 10)
	}
	return fmt.Sprintf("%d-%d", u.First, u.Last)
}

// Has reports whether uid is in the range.
func (u Users) Has(uid uint32) bool { return uid >= u.First && uid <= u.Last }

// Rules define which connections are redirected.
type Rules struct {
	To     uint16         // port of this machine
	Ports  []uint16       // destination ports
	Users  []Users        // users whose connections are redirected; none = all users
	Except []Users        // users whose connections are not, though they are among Users
	NoIPv6 bool           // only connections over IPv4
	Leave  []netip.Prefix // destinations that are not redirected
	// NoQUIC rejects UDP traffic to port 443 that would be redirected if it were TCP, so that programs fall back to
	// TCP.
	NoQUIC bool

	// Over names the interfaces over which the system would send the redirected connections. Connections over other
	// interfaces, such as a VPN or a bridge of containers, are not redirected.
	Over []string
	// Around names the interfaces in Over on which the destinations in LeaveAround are not redirected either.
	Around      []string
	LeaveAround []netip.Prefix
}

// Check returns an error if the rules are invalid.
func (r Rules) Check() error {
	switch {
	case r.To == 0:
		return errors.New("no port to redirect to")
	case len(r.Ports) == 0:
		return errors.New("no port to redirect")
	case slices.Contains(r.Ports, 0):
		return errors.New("port 0 is not valid")
	case slices.Contains(r.Ports, r.To):
		return fmt.Errorf("port %d would be redirected to itself", r.To)
	case slices.ContainsFunc(r.Over, func(name string) bool { return !plain(name) }):
		return fmt.Errorf("one of the interfaces %q has a name that firewalls would misinterpret", r.Over)
	}
	return nil
}

// plain reports whether the name of an interface has no special meaning in the languages of firewalls.
func plain(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' ||
			r == '-' ||
			r == '@')
	})
}

// Installed describes the rules in force.
type Installed struct {
	By string // "nftables" or "iptables"; "" = nothing is redirected
	To uint16
	V4 bool
	V6 bool
}
