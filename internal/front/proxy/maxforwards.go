package proxy

import (
	"bytes"
	"net/http"
	"strconv"
)

// answerHere applies Max-Forwards (RFC 9110 section 7.6.2) to header, the fields to forward: it answers a TRACE or
// OPTIONS that must go no further and reports whether it did.
func (x *exchange) answerHere(header http.Header) bool {
	if x.r.Method != http.MethodTrace && x.r.Method != http.MethodOptions {
		return false
	}
	left, err := strconv.ParseUint(header.Get("Max-Forwards"), 10, 31)
	if err != nil {
		return false
	}
	if left > 0 {
		header.Set("Max-Forwards", strconv.FormatUint(left-1, 10))
		return false
	}
	h := x.w.Header()
	var body bytes.Buffer
	if x.r.Method == http.MethodTrace {
		h.Set("Content-Type", "message/http")
		for _, secret := range []string{"Authorization", "Cookie"} { // Proxy-Authorization is gone already
			header.Del(secret)
		}
		body.WriteString("TRACE " + x.r.RequestURI + " HTTP/1.1\r\n")
		_ = header.Write(&body) // a Buffer takes everything
		body.WriteString("\r\n")
	}
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	if !x.r.ProtoAtLeast(1, 1) || x.upload != nil && x.r.ProtoMajor == 1 {
		h.Set("Connection", "close")
	}
	_, _ = x.w.Write(body.Bytes()) // the client may be gone
	return true
}
