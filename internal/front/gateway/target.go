package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/front/chain"
)

// target is an object at an https server.
type target struct {
	host string // in lower case, with a port unless it is 443
	path string // path and query, byte for byte as given (RFC 9110 section 7.7)
}

const httpsPort = "443"

// cutTarget splits "HOST/PATH?QUERY", the end of a path of the gateway.
func cutTarget(s string) (target, error) {
	host, path, found := strings.Cut(s, "/")
	if !found {
		if strings.Contains(host, "?") {
			return target{}, errNoHost
		}
	}
	t := target{path: "/" + path}
	var err error
	t.host, err = cleanHost(host)
	return t, err
}

var (
	errNoHost = errors.New("the second part of the path must be a host name, with or without a port")
	errPath   = errors.New("the path has a segment .., or a byte that is not allowed in URLs")
)

// cleanHost returns the canonical form of "host[:port]" that target and Hosts use. It rejects anything else: user
// names, escapes, zones, and names that some programs take for numbers.
func cleanHost(s string) (string, error) {
	host, port := strings.ToLower(s), ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
			return "", errNoHost
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || !a.Is6() || a.Zone() != "" {
			return "", errNoHost
		}
		host = "[" + a.String() + "]"
	} else if !validName(host) {
		return "", errNoHost
	}
	if port == "" || port == httpsPort {
		return host, nil
	}
	return host + ":" + port, nil
}

// validName reports whether s is the name of a host, or an IPv4 address in its usual form. Some programs take a name
// whose last label is a number for an address (WHATWG URL, section 3.5): 127.1, 0x7f.1.
func validName(s string) bool {
	if s == "" || len(s) > 253 || strings.ContainsFunc(s, notInHost) {
		return false
	}
	labels := strings.Split(s, ".")
	if slices.Contains(labels, "") {
		return false
	}
	last := labels[len(labels)-1]
	number := strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
	if !number {
		return true
	}
	_, err := netip.ParseAddr(s)
	return err == nil
}

func notInHost(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

// escapes are other spellings of segment separators and of dots.
var escapes = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", `\`, "/")

// checkPath rejects paths whose meaning depends on the reader: servers and clients disagree on ".." segments, plain or
// escaped.
func checkPath(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '\\' {
			return errPath
		}
	}
	path, _, _ := strings.Cut(s, "?")
	for segment := range strings.SplitSeq(escapes.Replace(path), "/") {
		if segment == ".." {
			return errPath
		}
	}
	return nil
}

// address returns "host:port".
func (t target) address() string {
	if strings.HasPrefix(t.host, "[") && strings.HasSuffix(t.host, "]") || !strings.Contains(t.host, ":") {
		return t.host + ":" + httpsPort
	}
	return t.host
}

// url returns a URL that is requested with the path unchanged.
func (t target) url() *url.URL {
	if strings.HasPrefix(t.path, "//") { // otherwise it would be taken for a host
		return &url.URL{Scheme: "https", Host: t.address(), Opaque: "//" + t.host + t.path}
	}
	return &url.URL{Scheme: "https", Host: t.address(), Opaque: t.path}
}

var (
	errDowngrade = errors.New("the server redirects to an address without https, which cannot be verified")
	errNowhere   = errors.New("the server redirects to an address that cannot be used")
)

// parsed returns the parsed URL of t, for rules about its parts. Requests have that of url.
func (t target) parsed() (*url.URL, error) {
	u, err := url.Parse("https://" + t.host + chain.Spell(t.path))
	if err != nil {
		return nil, errNowhere
	}
	return u, nil
}

// resolve returns the target of a reference in t, such as a Location.
func (t target) resolve(reference string) (target, error) {
	from, err := t.parsed()
	if err != nil {
		return target{}, err
	}
	to, err := from.Parse(chain.Spell(reference))
	switch {
	case reference == "" || err != nil || to.Host == "" || to.Opaque != "" || to.User != nil:
		return target{}, errNowhere
	case to.Scheme != "https":
		return target{}, errDowngrade
	}
	next := target{path: to.EscapedPath()}
	if next.path == "" {
		next.path = "/"
	}
	if to.RawQuery != "" || to.ForceQuery {
		next.path += "?" + escaped(to.RawQuery)
	}
	if next.host, err = cleanHost(to.Host); err != nil || checkPath(next.path) != nil {
		return target{}, errNowhere
	}
	return next, nil
}

// escaped escapes the bytes that a URL may not have. Servers write queries with such bytes, and clients escape them in
// this way.
func escaped(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// onInternet reports whether servers may lead the gateway to a host that the user did not list. It must be on the
// internet, at the usual port; otherwise a server could make the gateway send requests to the user's own network. The
// addresses of names are checked before each dial.
func onInternet(host string) bool {
	return (strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") || !strings.Contains(host, ":")) &&
		chain.Check(host) == nil
}
