package get

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"

	"github.com/tributary-http/tributary/internal/front/chain"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// location is a URL that can be requested.
type location struct {
	url  url.URL // http or https, without userinfo and fragment
	host string  // for DNS, in ASCII
	port string
	auth string // Authorization from the URL that the user gave; "" = none
}

// parseLocation parses a URL that the user typed.
func parseLocation(s string) (location, error) {
	wrong := func(err error) (location, error) {
		return location{}, &Error{Kind: Usage, Err: err, Next: "use a URL like https://example.com/file"}
	}
	u, err := url.Parse(chain.Spell(s))
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) { // without the URL, which may contain a password
			err = e.Err
		}
		return wrong(fmt.Errorf("this is not a URL: %w", err))
	}
	l, err := newLocation(u)
	if err != nil {
		return wrong(err)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		l.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return l, nil
}

func newLocation(u *url.URL) (location, error) {
	l := location{url: *u}
	l.url.User, l.url.Fragment, l.url.RawFragment = nil, "", ""
	switch u.Scheme {
	case "http":
		l.port = "80"
	case "https":
		l.port = "443"
	case "":
		return location{}, errors.New("the URL has no scheme")
	default:
		return location{}, fmt.Errorf("only http and https URLs can be downloaded, not %s", u.Scheme)
	}
	l.host = u.Hostname()
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return location{}, errors.New("the port is not a number from 1 to 65535")
		}
		l.port = strconv.FormatUint(n, 10)
	}
	if l.host == "" {
		return location{}, errors.New("the URL has no host")
	}
	if !strings.Contains(l.host, ":") {
		ascii, err := idna.Lookup.ToASCII(l.host)
		switch {
		case err == nil:
			l.host = ascii
		case strings.ContainsFunc(l.host, func(r rune) bool { return r >= 0x80 || !inHost(r) }):
			return location{}, errors.New("the host name has invalid characters")
		}
	}
	return l, nil
}

// inHost reports whether r may be part of a host name. It also allows underscores, which some names in DNS have.
func inHost(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
}

// origin returns scheme, host and port, which credentials are bound to.
func (l location) origin() string {
	return l.url.Scheme + "://" + net.JoinHostPort(strings.ToLower(l.host), l.port)
}

// place is transport.Place.
func (l location) place() string { return transport.Place(l.request()) }

// request returns the URL to request, with the host in the form that DNS and the Host field need.
func (l location) request() *url.URL {
	authority := l.host
	if strings.Contains(authority, ":") {
		authority = "[" + authority + "]"
	}
	if p := l.url.Port(); p != "" {
		authority += ":" + l.port
	}
	u := &url.URL{
		Scheme:     l.url.Scheme,
		Host:       authority,
		Path:       l.url.Path,
		RawPath:    l.url.RawPath,
		RawQuery:   escapeQuery(l.url.RawQuery),
		ForceQuery: l.url.ForceQuery,
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u
}

// escapeQuery escapes the bytes that a request line may not contain; the rest stays as the user wrote it.
func escapeQuery(q string) string {
	var b strings.Builder
	for i := range len(q) {
		if c := q[i]; c <= ' ' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// cutField splits "Name: value" and returns the name in canonical form. It rejects anything but a field line (RFC 9110
// section 5).
func cutField(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	if !ok || !httpguts.ValidHeaderFieldName(name) || strings.ContainsAny(value, "\r\n\x00") {
		return "", "", false
	}
	return http.CanonicalHeaderKey(name), strings.TrimSpace(value), true
}
