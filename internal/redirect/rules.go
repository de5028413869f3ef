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

// Mark is the mark (SO_MARK) of the sockets that are never redirected: the proxy's own. It keeps clear of the bits that
// Tailscale and Kubernetes use. Its bit 0x40000 is PERMISSION_NETWORK of Android's netd: only with that may a user other
// than root send over a network in the background, as mobile data is beside Wi-Fi.
const Mark = 0x740000

// Users is a range of user IDs, both ends included.
type Users struct{ First, Last uint32 }

// ParseUsers reads "1000" or "10000-19999".
func ParseUsers(s string) (Users, error) {
	first, last, ranged := strings.Cut(s, "-")
	a, err := strconv.ParseUint(first, 10, 32)
	b := a
	if err == nil && ranged {
		b, err = strconv.ParseUint(last, 10, 32)
	}
	if err != nil || b < a || b == math.MaxUint32 { // which stands for nobody, see chown(2)
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
	Ports  []uint16       // where the connections were going
	Users  []Users        // whose connections; none = everybody's
	Except []Users        // whose are not, though they are among Users
	NoIPv6 bool           // only connections over IPv4
	Leave  []netip.Prefix // destinations that are left alone
	// NoQUIC rejects what would be redirected on TCP port 443 where it is sent to UDP port 443, so that programs fall back to
	// TCP.
	NoQUIC bool

	// Over names the interfaces over which the system would send the redirected connections. Connections over others, such as a
	// VPN or a bridge of containers, are left alone.
	Over []string
	// Around names those of Over whose LeaveAround destinations are left alone, too.
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

// plain reports whether the name of an interface stands for itself in the languages of firewalls.
func plain(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' || r == '@')
	})
}

// Installed describes the rules in force.
type Installed struct {
	By string // "nftables" or "iptables"; "" = nothing is redirected
	To uint16
	V4 bool
	V6 bool
}
