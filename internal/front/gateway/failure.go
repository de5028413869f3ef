package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/net/transport"
)

// failure is an error response of the gateway itself.
type failure struct {
	status int
	cause  string // error type of Proxy-Status (RFC 9209 section 2.3)
	text   string // what happened and what to do next, without parts of the request or addresses
}

func badRequest(text string) *failure {
	return &failure{http.StatusBadRequest, "http_request_error", text}
}

func forbidden(text string) *failure {
	return &failure{http.StatusForbidden, "http_request_denied", text}
}

func badGateway(text string) *failure {
	return &failure{http.StatusBadGateway, "http_protocol_error", text}
}

// sentence turns an error of this package into a text for users.
func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// failed returns the response to an error of the Transport.
func failed(err error) *failure {
	row := transport.FailureOf(err).Outcome.Row()
	return &failure{row.Status, row.ProxyStatus, row.Text + ". " + strings.ToUpper(row.Next[:1]) + row.Next[1:] + "."}
}

// refuse answers with f and closes the connection.
func (x *exchange) refuse(f *failure) {
	if x.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone, or its token is no longer valid
	}
	h := x.w.Header()
	harmless(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Proxy-Status", "tributary; error="+f.cause)
	h.Set("Connection", "close")
	body := "Tributary (gateway): " + f.text + "\n"
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.boundWrite()
	x.w.WriteHeader(f.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write([]byte(body)) // the client may be gone
	}
}
