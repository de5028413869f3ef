package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// target names an object: the server to connect to and the resource to request there.
type target struct {
	scheme string // "http" or "https"
	host   string // authority as the client spelled it: the Host field
	addr   string // "host:port" to connect to, default port filled in
	path   string // path and query, byte for byte as the client sent them (RFC 9110 section 7.7)
}

// parseTarget returns the target of a request in absolute-form. Path is taken from the bytes that the client sent, not
// from the parsed URL (R6).
func parseTarget(r *http.Request) (target, *failure) {
	var port string
	scheme := r.URL.Scheme
	switch scheme {
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return target{}, badRequest("This proxy supports only http:// and https:// URLs. " +
			"Do not use the proxy for other schemes.")
	}
	rest, ok := strings.CutPrefix(r.RequestURI[len(scheme):], "://")
	if !ok {
		return target{}, badRequest("The URL has no host. Write it as http://host/path.")
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	// Programs that cannot split a URL send it whole. They authenticate on their own: what they send, or what the
	// server asks for, may be another scheme than Basic, which would show the password.
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if strings.Contains(path, "#") {
		return target{},
			badRequest("The URL has a fragment (#...), which must not be sent. Remove it, or write # as %23.")
	}
	host, given, f := splitAuthority(authority)
	if f != nil {
		return target{}, f
	}
	if given != "" {
		port = given
	}
	switch {
	case path == "" && r.Method == http.MethodOptions:
		path = "*" // RFC 9112 section 3.2.4
	case path == "" || path[0] == '?':
		path = "/" + path // RFC 9112 section 3.2.1
	}
	return target{scheme: scheme, host: authority, addr: net.JoinHostPort(host, port), path: path}, nil
}

// splitAuthority splits "host[:port]" and refuses anything else: userinfo, zone identifiers, ports out
// of range, and bytes that are invalid in host names. port is "" if there is none.
func splitAuthority(s string) (host, port string, f *failure) {
	if strings.Contains(s, "@") {
		return "", "", badRequest("The host contains a user name or password (user@host). Remove it.")
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok = strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(host)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "",
				badRequest("The host in brackets is not an IPv6 address. Write it like [2001:db8::1], without a zone.")
		}
		if port, ok = strings.CutPrefix(port, ":"); !ok && port != "" {
			return "", "", badRequest("Only a port may follow an address in brackets.")
		}
	} else {
		host, port, _ = strings.Cut(s, ":")
		if host == "" || len(host) > 255 || strings.ContainsFunc(host, notInHost) {
			return "", "", badRequest("The host name is empty, too long or has invalid characters. " +
				"Write international names in their xn-- form.")
		}
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", "", badRequest("The port is not a number from 1 to 65535.")
		}
		port = strconv.FormatUint(n, 10)
	}
	return host, port, nil
}

func notInHost(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

// requestURL returns a URL that net/http dials as t.addr and writes as t.path, byte for byte.
func requestURL(t target) *url.URL {
	if strings.HasPrefix(t.path, "//") {
		// URL.RequestURI puts the scheme before an Opaque that begins with "//". In absolute-form, which every origin
		// must accept (RFC 9112 section 3.2.2), the path keeps its bytes.
		return &url.URL{Scheme: t.scheme, Host: t.addr, Opaque: "//" + t.host + t.path}
	}
	return &url.URL{Scheme: t.scheme, Host: t.addr, Opaque: t.path}
}

// own reports whether addr ("host:port") is one of our own listeners, as far as that is known before names are resolved
// (R15).
func (p *Proxy) own(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, perr := strconv.ParseUint(port, 10, 16)
	if p.Self == nil || err != nil || perr != nil {
		return false
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	ip, err := netip.ParseAddr(name)
	switch {
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
	case err == nil && ip.Unmap().IsUnspecified():
	case err == nil:
		return p.Self(netip.AddrPortFrom(ip.Unmap(), uint16(n)))
	default:
		return false
	}
	return p.Self(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(n))) ||
		p.Self(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(n)))
}
