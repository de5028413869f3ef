package origin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/origin/byterange"
	"github.com/tributary-http/tributary/internal/segment"
)

var errRange = errors.New("the range asked for holds no byte")

// appendRequest appends the bytes of the GET that a asks for. It adds Host, Range and If-Range and nothing else; what
// could end a line early (RFC 9112 section 11.1) is refused.
func appendRequest(b []byte, a *engine.Ask) ([]byte, error) {
	ranged := a.Range != segment.Range{}
	if ranged && (a.Range.Start < 0 || a.Range.Empty()) {
		return nil, errRange
	}
	if a.Target.Path == "" || strings.ContainsFunc(a.Target.Path, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, errors.New("the target holds a space or a control character")
	}
	b = append(b, "GET "...)
	b = append(b, a.Target.Path...)
	b = append(b, " HTTP/1.1\r\n"...)
	b, err := appendField(b, "Host", a.Target.Host)
	if err != nil {
		return nil, err
	}
	identityOnly := a.Want != nil && a.Want.Coding == ""
	names := make([]string, 0, len(a.Header))
	for name := range a.Header {
		switch http.CanonicalHeaderKey(name) {
		// The range fields are the Ask's own, the others would change how the request is delimited.
		case "Host", "Range", "If-Range", "Content-Length", "Transfer-Encoding":
			continue
		case "Accept-Encoding":
			if identityOnly {
				continue
			}
		}
		names = append(names, name)
	}
	slices.Sort(names) // same Ask, same bytes
	for _, name := range names {
		for _, value := range a.Header[name] {
			if b, err = appendField(b, name, value); err != nil {
				return nil, err
			}
		}
	}
	// The first answer had no coding: no node may choose another representation for this one.
	if identityOnly {
		b = append(b, "Accept-Encoding: identity\r\n"...)
	}
	if ranged {
		b = append(b, "Range: "...)
		b = append(b, byterange.FormatRange(a.Range)...)
		b = append(b, "\r\n"...)
		// RFC 9110 section 13.1.5: no If-Range in a request without Range.
		if a.IfRange != "" {
			if b, err = appendField(b, "If-Range", a.IfRange); err != nil {
				return nil, err
			}
		}
	}
	return append(b, "\r\n"...), nil
}

// appendField appends one field line; the value's bytes stay as they are. The error does not quote the value, which may
// be a secret.
func appendField(b []byte, name, value string) ([]byte, error) {
	if name == "" || strings.ContainsFunc(name, notToken) {
		return nil, errors.New("malformed name of a header field")
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return nil, fmt.Errorf("header field %s holds CR, LF or NUL", name)
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...), nil
}

// notToken reports whether r is no tchar of RFC 9110 section 5.6.2.
func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
