package proxy

import (
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// failure is an answer of the proxy itself (R68).
type failure struct {
	status     int
	cause      string        // error type of Proxy-Status (RFC 9209 section 2.3)
	retryAfter time.Duration // 0 = no Retry-After
	text       string        // what happened and what to do next; contains no part of the request and no address
}

func badRequest(text string) *failure {
	return &failure{http.StatusBadRequest, "http_request_error", 0, text}
}

func forbidden(text string) *failure {
	return &failure{http.StatusForbidden, "http_request_denied", 0, text}
}

func badGateway(cause, text string) *failure {
	return &failure{http.StatusBadGateway, cause, 0, text}
}

const retryAfter = 5 * time.Second // a link that is only suspect or being probed is back by then

// failureOf returns the answer to the client for an outcome.
func failureOf(o fault.Outcome) *failure {
	row := o.Row()
	f := &failure{
		status: row.Status, cause: row.ProxyStatus,
		text: row.Text + ". " + strings.ToUpper(row.Next[:1]) + row.Next[1:] + ".",
	}
	if f.status == http.StatusServiceUnavailable {
		f.retryAfter = retryAfter
	}
	return f
}

// classify returns the answer to the client for an error of the Transport.
func classify(err error) *failure {
	failed := transport.FailureOf(err)
	f := failureOf(failed.Outcome)
	if f.retryAfter > 0 && failed.RetryAfter > 0 {
		f.retryAfter = failed.RetryAfter
	}
	return f
}

// refuse answers with f and closes the connection: the next bytes on it may be the rest of a bad request (R188).
func (x *exchange) refuse(f *failure) {
	if x.p.Refused != nil && x.r.Method == http.MethodConnect {
		x.p.Refused(x.r.RequestURI, f.text)
	}
	h := x.w.Header()
	clear(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Proxy-Status", "tributary; error="+f.cause)
	if x.r.ProtoMajor == 1 {
		h.Set("Connection", "close")
	}
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
	body := "Tributary (proxy): " + f.text + "\n"
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.boundWrite()
	x.w.WriteHeader(f.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write([]byte(body)) // the client may be gone
	}
}

// fail answers the client after an error that occurred before the head of an answer.
func (x *exchange) fail(err error) {
	if x.upload != nil && x.upload.late() {
		x.refuse(&failure{
			http.StatusRequestTimeout, "http_request_error", 0,
			"The request's content came too slowly: less than 1 KiB per second for 30 seconds. Send it again.",
		})
		return
	}
	if x.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	x.p.Log.Debug("request failed", "method", x.r.Method, "error", err)
	if x.upload != nil && x.upload.broken.Load() {
		x.refuse(badRequest("The request's content is incomplete or malformed. Send it again."))
		return
	}
	x.refuse(classify(err))
}

// autoConfigPath is where programs look for the script that points them to the proxy.
const autoConfigPath = "/proxy.pac"

// autoConfig answers a request for the script. The connection ends: nobody reads the request's content.
func (x *exchange) autoConfig() {
	x.w.Header().Set("Connection", "close")
	x.boundWrite()
	x.p.AutoConfig.ServeHTTP(x.w, x.r)
}

// help answers a request to the proxy port itself (R4).
func (x *exchange) help() {
	addr := "127.0.0.1:8080"
	if local, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		addr = local.String()
	}
	x.refuse(badRequest("this is an HTTP proxy, not a web server. Tell programs to use it:\n\n" +
		"    export http_proxy=http://" + addr + " https_proxy=http://" + addr +
		" no_proxy=localhost,127.0.0.0/8,::1\n\n" +
		"or for one download: curl -x http://" + addr + " URL\n" +
		"\"tributary status\" shows its links and downloads."))
}
