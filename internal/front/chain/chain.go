// Package chain holds the rules for a chain of redirects that do not depend on which door follows it: where servers may
// lead, which cookies go with the next request, and how a Location is read.
package chain

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/tributary-http/tributary/internal/net/transport"
)

// maxName is the length in bytes of the longest host name.
const maxName = 253

// ErrInward says that a server on the internet redirects into a network that only this machine reaches.
var ErrInward = errors.New("the server redirects to a name or address of the local network")

// Check returns ErrInward if a server on the internet must not redirect to a host, a name or an address: it would make
// this machine send requests to the devices around it, or to itself. The addresses of names are checked before they are
// dialed.
func Check(host string) error {
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := netip.ParseAddr(host)
	number := strings.Trim(last, "0123456789") == "" || strings.HasPrefix(strings.ToLower(last), "0x")
	// Some resolvers take a name whose last label is a number for an address (WHATWG URL, section 3.5): 127.1, 0x7f.1.
	if len(host) > maxName || number && err != nil || !transport.Public(host) {
		return ErrInward
	}
	return nil
}

// Spell returns a URL or a reference in which each percent sign that does not begin an escape is escaped itself,
// outside of the query, which needs no escapes to be read. Names of files such as "100%.zip" are often written so.
func Spell(reference string) string {
	var b strings.Builder
	query := false
	for i := range len(reference) {
		switch c := reference[i]; {
		case c == '?':
			query = true
		case c == '#':
			query = false
		case c == '%' && !query && !escape(reference[i:]):
			b.WriteString("%25")
			continue
		}
		b.WriteByte(reference[i])
	}
	return b.String()
}

// escape reports whether s begins with an escape.
func escape(s string) bool { return len(s) > 2 && hex(s[1]) && hex(s[2]) }

func hex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
