package opening

import (
	"net/url"
	"slices"
	"strings"
)

// ineligibleAuth returns why the client's credentials may not be sent more than once, on several connections; None if
// they may (R83).
func ineligibleAuth(h map[string][]string) Reason {
	if len(h["Dpop"]) > 0 { // a proof is for one request and may be refused the second time (RFC 9449 section 11.1)
		return AuthOnce
	}
	switch lines := h["Authorization"]; len(lines) {
	case 0:
		return None
	case 1:
		return credentials(lines[0])
	default:
		return AuthUnknown
	}
}

// AuthenticatesConnection reports whether the credentials in h may apply not only to their request but also to all
// later ones on the same connection, as with NTLM and Negotiate (RFC 4559 section 6) and possibly with unknown schemes.
func AuthenticatesConnection(h map[string][]string) bool {
	return slices.ContainsFunc(h["Authorization"], func(line string) bool {
		reason := credentials(line)
		return reason == AuthConnection || reason == AuthUnknown
	})
}

// harmless are the fields without credentials. All others may, such as Authorization, Cookie and those that sites
// invent: they are meant for the origin that the user named (RFC 9110 section 15.4), and not for the networks on the
// way.
var harmless = [...]string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "If-Modified-Since", "If-None-Match", "If-Range",
	"Pragma",
	"Priority", "Range", "User-Agent",
}

// Harmless reports whether a field is without credentials. The name is in canonical form.
func Harmless(name string) bool { return slices.Contains(harmless[:], name) }

// Exposes reports whether a request reveals credentials to everyone on its path: it sends them over plain http.
func Exposes(scheme string, h map[string][]string) bool {
	if scheme != "http" {
		return false
	}
	for name, values := range h {
		if len(values) > 0 && !Harmless(name) {
			return true
		}
	}
	return false
}

// credentials returns why the credentials in one Authorization field may not be sent more than once; None if they may.
func credentials(line string) Reason {
	switch scheme := authScheme(line); scheme {
	case "basic", "bearer", "token", "aws": // aws: signature version 2, which does not cover the fields in varying
		return None
	case "ntlm", "negotiate", "kerberos":
		return AuthConnection
	case "digest", "oauth", "hawk", "scram-sha-1", "scram-sha-256", "dpop":
		return AuthOnce
	default:
		if headerSignature(scheme) {
			return None // signed checks the details
		}
		return AuthUnknown
	}
}

func authScheme(line string) string {
	scheme, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return strings.ToLower(scheme)
}

// headerSignature reports whether scheme is AWS signature version 4 or Google's variant, which list the fields that
// they cover.
func headerSignature(scheme string) bool {
	return strings.HasPrefix(scheme, "aws4-") || strings.HasPrefix(scheme, "goog4-")
}

// signed reports whether a signature covers a field that differs between the requests of a transfer: in the
// Authorization field, in the query of a signed URL, or in an HTTP message signature (RFC 9421), which is not parsed.
func signed(r Request) bool {
	if len(r.Fields["Signature"]) > 0 || len(r.Fields["Signature-Input"]) > 0 {
		return true
	}
	if auth := first(r.Fields, "Authorization"); headerSignature(authScheme(auth)) {
		_, list, ok := strings.Cut(strings.ToLower(auth), "signedheaders=")
		list, _, _ = strings.Cut(list, ",")
		if !ok || coversVarying(strings.TrimSpace(list), r.Fields) {
			return true
		}
	}
	for param := range strings.SplitSeq(r.Query, "&") {
		name, value, _ := strings.Cut(param, "=")
		name = strings.ToLower(name)
		if name != "x-amz-signedheaders" && name != "x-goog-signedheaders" {
			continue
		}
		list, err := url.QueryUnescape(value)
		if err != nil || coversVarying(strings.ToLower(list), r.Fields) {
			return true
		}
	}
	return false
}

// coversVarying reports whether the semicolon-separated list of field names, in lower case, contains one of varying. A
// client that accepts only identity, as AWS's SDKs do, sends the same Accept-Encoding as all parts of a transfer.
func coversVarying(list string, fields map[string][]string) bool {
	for name := range strings.SplitSeq(list, ";") {
		name = strings.TrimSpace(name)
		if name == "accept-encoding" && slices.Equal(fields["Accept-Encoding"], []string{"identity"}) {
			continue
		}
		if slices.Contains(varying[:], name) {
			return true
		}
	}
	return false
}
