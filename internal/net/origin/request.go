package origin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"golang.org/x/net/http/httpguts"
)

var errRange = errors.New("the requested range is empty")

// appendRequest appends the bytes of the GET for a.
func appendRequest(b []byte, a *engine.RangeRequest) ([]byte, error) {
	b = append(b, "GET "...)
	b = append(b, a.Target.Path...)
	b = append(b, " HTTP/1.1\r\n"...)
	err := eachField(a, func(name, value string) {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	})
	if err != nil {
		return nil, err
	}
	return append(b, "\r\n"...), nil
}

// eachField calls emit for the fields of the GET for a, in a deterministic order. It adds only Host, Range, If-Range
// and Accept-Encoding, and rejects bytes that could end a line early (RFC 9112 section 11.1).
func eachField(a *engine.RangeRequest, emit func(name, value string)) error {
	ranged := a.Range != segment.Range{}
	if ranged && (a.Range.Start < 0 || a.Range.Empty()) {
		return errRange
	}
	if a.Target.Path == "" || strings.ContainsFunc(a.Target.Path, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("the request target contains a space or a control character")
	}
	field := func(name, value string) error {
		if err := checkField(name, value); err != nil {
			return err
		}
		emit(name, value)
		return nil
	}
	if err := field("Host", a.Target.Host); err != nil {
		return err
	}
	identityOnly := a.Want != nil && a.Want.Coding == ""
	names := make([]string, 0, len(a.Header))
	for name := range a.Header {
		switch http.CanonicalHeaderKey(name) {
		// The range fields are the RangeRequest's own, the others would change how the request is delimited.
		case "Host", "Range", "If-Range", "Content-Length", "Transfer-Encoding":
			continue
		case "Accept-Encoding":
			if identityOnly {
				continue
			}
		}
		names = append(names, name)
	}
	slices.Sort(names) // same request, same bytes
	for _, name := range names {
		for _, value := range a.Header[name] {
			if err := field(name, value); err != nil {
				return err
			}
		}
	}
	// The first answer had no coding: no node may choose another representation for this one.
	if identityOnly {
		emit("Accept-Encoding", "identity")
	}
	if ranged {
		emit("Range", byterange.FormatRange(a.Range))
		// RFC 9110 section 13.1.5: no If-Range in a request without Range.
		if a.IfRange != "" {
			return field("If-Range", a.IfRange)
		}
	}
	return nil
}

// checkField rejects a malformed field line; the value may contain any other bytes. The error does not quote the value,
// which may be a secret.
func checkField(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("malformed name of a header field")
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return fmt.Errorf("header field %s holds CR, LF or NUL", name)
	}
	return nil
}

// HostPort returns the address to connect to.
func HostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
