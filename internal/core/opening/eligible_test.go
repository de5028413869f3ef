package opening

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// request parses a request as the server does; fields are lines without line endings.
func request(t *testing.T, line string, fields ...string) Request {
	t.Helper()
	raw := line + "\r\nHost: o\r\n" + strings.Join(append(fields, "", ""), "\r\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return Request{
		Method: r.Method, Scheme: r.URL.Scheme, Query: r.URL.RawQuery, Fields: r.Header,
		ContentLength: r.ContentLength, TransferEncoding: r.TransferEncoding,
	}
}

func TestRefusal(t *testing.T) {
	const get = "GET http://o/big HTTP/1.1"
	const sigv4 = "Authorization: AWS4-HMAC-SHA256 Credential=k/d/r/s3/aws4_request, SignedHeaders="
	tests := []struct {
		name   string
		line   string
		fields []string
		want   Reason
	}{
		{"R75 plain GET", get, nil, None},
		{"R75 HTTP/1.0", "GET http://o/ HTTP/1.0", nil, None},
		{"R75 upper-case scheme", "GET HTTP://o/ HTTP/1.1", nil, None},
		{"R47 HEAD", "HEAD http://o/ HTTP/1.1", nil, Method},
		{"R75 POST", "POST http://o/ HTTP/1.1", nil, Method},
		{"R75 lower-case method", "get http://o/ HTTP/1.1", nil, Method},
		{"R75 https", "GET https://o/ HTTP/1.1", nil, None},
		{"R75 ftp", "GET ftp://o/ HTTP/1.1", nil, Scheme},
		{"R42 body", get, []string{"Content-Length: 5"}, Body},
		{"R42 chunked body", get, []string{"Transfer-Encoding: chunked"}, Body},
		{"R42 empty body", get, []string{"Content-Length: 0"}, None},
		{"R75 Upgrade", get, []string{"Connection: keep-alive, Upgrade", "Upgrade: websocket"}, Upgrade},
		{"R75 Upgrade nominated only", get, []string{"Connection: upgrade"}, Upgrade},
		{"R75 Expect", get, []string{"Expect: 100-continue"}, Expect},
		{"R115 trailers wanted", get, []string{"TE: gzip;q=0.5, trailers"}, Trailers},
		{"R115 other codings", get, []string{"TE: gzip"}, None},
		{"R21 Range nominated", get, []string{"Connection: RANGE", "Range: bytes=0-"}, Nominated},
		{"R21 nominated on the second line", get, []string{"Connection: close", "Connection: x, if-range"}, Nominated},
		{"R21 other nominated", get, []string{"Connection: x-a"}, None},
		{"R79 a-b", get, []string{"Range: bytes=0-0"}, None},
		{"R79 a-", get, []string{"Range: bytes=5-"}, None},
		{"R79 -n", get, []string{"Range: bytes=-500"}, SuffixRange},
		{"R79 -0", get, []string{"Range: bytes=-0"}, BadRange},
		{"R79 -", get, []string{"Range: bytes=-"}, BadRange},
		{"R79 5-2", get, []string{"Range: bytes=5-2"}, BadRange},
		{"R79 other unit", get, []string{"Range: items=0-1"}, BadRange},
		{"R79 no range", get, []string{"Range: bytes="}, BadRange},
		{"R79 sign", get, []string{"Range: bytes=+1-2"}, BadRange},
		{"R79 three numbers", get, []string{"Range: bytes=1-2-3"}, BadRange},
		{"R79 two ranges", get, []string{"Range: bytes=0-1,4-5"}, MultiRange},
		{"R79 two fields", get, []string{"Range: bytes=0-1", "Range: bytes=4-5"}, MultiRange},
		{"R81 int64 max", get, []string{"Range: bytes=0-9223372036854775807"}, BadRange},
		{"R81 int64 max - 1", get, []string{"Range: bytes=0-9223372036854775806"}, None},
		{"R81 20 digits", get, []string{"Range: bytes=00000000000000000001-"}, BadRange},
		{"R83 Basic", get, []string{"Authorization: Basic eDp5"}, None},
		{"R83 Bearer", get, []string{"Authorization: bearer abc"}, None},
		{"R83 cookie", get, []string{"Cookie: a=b"}, None},
		{"R83 NTLM", get, []string{"Authorization: NTLM TlRM"}, AuthConnection},
		{"R83 Negotiate", get, []string{"Authorization: Negotiate YII"}, AuthConnection},
		{"R83 Digest", get, []string{`Authorization: Digest username="u", nc=00000001`}, AuthOnce},
		{"R83 OAuth 1", get, []string{`Authorization: OAuth oauth_nonce="x"`}, AuthOnce},
		{"R83 DPoP", get, []string{"DPoP: eyJ"}, AuthOnce},
		{"R83 unknown scheme", get, []string{"Authorization: Mystery x"}, AuthUnknown},
		{"R83 two fields", get, []string{"Authorization: Basic a", "Authorization: Basic b"}, AuthUnknown},
		{"R83 SigV4", get, []string{sigv4 + "host;x-amz-date, Signature=00"}, None},
		{"R83 SigV4 with range", get, []string{sigv4 + "host;range;x-amz-date, Signature=00"}, Signed},
		{"R83 SigV4 with range last", get, []string{sigv4 + "host;range"}, Signed},
		{"R83 SigV4 with accept-encoding", get, []string{sigv4 + "accept-encoding;host, Signature=00"}, Signed},
		{"R83 SigV4 with accept-encoding that stays", get, []string{"Accept-Encoding: identity", sigv4 + "accept-encoding;host, Signature=00"}, None},
		{"R83 SigV4 with a list of codings", get, []string{"Accept-Encoding: identity, gzip", sigv4 + "accept-encoding;host, Signature=00"}, Signed},
		{"R83 SigV4 with two lines of codings", get, []string{"Accept-Encoding: identity", "Accept-Encoding: gzip", sigv4 + "accept-encoding;host, Signature=00"}, Signed},
		{"R83 SigV4 without a list", get, []string{"Authorization: AWS4-HMAC-SHA256 x"}, Signed},
		{"R83 signed URL", "GET http://o/?X-Amz-SignedHeaders=host&X-Amz-Signature=0 HTTP/1.1", nil, None},
		{"R83 signed URL with range", "GET http://o/?X-Amz-SignedHeaders=host%3Brange HTTP/1.1", nil, Signed},
		{"R83 message signature", get, []string{`Signature-Input: s=("range")`, "Signature: s=:AA==:"}, Signed},
		{"R85 no-transform", get, []string{"Cache-Control: no-transform"}, None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Ineligible(request(t, tt.line, tt.fields...)); got != tt.want {
				t.Errorf("Refusal = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestStartRanged(t *testing.T) {
	tests := []struct {
		fields []string
		want   bool
	}{
		{nil, true},
		{[]string{"Accept-Encoding: identity"}, true},
		{[]string{"Accept-Encoding:"}, true},
		{[]string{"Accept-Encoding: identity, *;q=0"}, true},
		{[]string{"Accept-Encoding: gzip;q=0.0, Identity;q=0.5"}, true},
		{[]string{"Accept-Encoding: gzip"}, false},
		{[]string{"Accept-Encoding: gzip; q=0.001"}, false},
		{[]string{"Accept-Encoding: *"}, false},
		{[]string{"Accept-Encoding: identity", "Accept-Encoding: br"}, false},
		{[]string{"Accept-Encoding: gzip", "Range: bytes=0-"}, true},
		{[]string{"Range: bytes=0-1,3-4"}, false},
		{[]string{`If-Range: "a"`}, false},
		{[]string{`If-Range: "a"`, "Range: bytes=7-"}, true},
		{[]string{`If-None-Match: "a"`}, true},
	}
	for _, tt := range tests {
		t.Run("R77 "+strings.Join(tt.fields, " "), func(t *testing.T) {
			if got := startRanged(request(t, "GET http://o/ HTTP/1.1", tt.fields...).Fields); got != tt.want {
				t.Errorf("startRanged = %v, want %v", got, tt.want)
			}
		})
	}
}
