package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/transport"
)

// failure is an answer of our own (R68).
type failure struct {
	status     int
	cause      string        // error type of Proxy-Status (RFC 9209 section 2.3)
	retryAfter time.Duration // 0 = no Retry-After
	text       string        // what happened and what to do next; names nothing of the request and no address
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

func unavailable(cause string, after time.Duration, text string) *failure {
	if after <= 0 {
		after = retryAfter
	}
	return &failure{http.StatusServiceUnavailable, cause, after, text}
}

// prohibited is the one answer for destinations that are denied and for own listeners: which it is tells a scanner what
// listens here (R194).
func prohibited() *failure {
	return &failure{
		http.StatusForbidden, "destination_ip_prohibited", 0,
		"The request leads to Tributary itself or to an address that is not allowed. Exempt local addresses from the " +
			"proxy: no_proxy=localhost,127.0.0.0/8,::1. Others can be allowed by allow_destinations in the configuration.",
	}
}

// rebound is the answer for a public name that leads to a private network.
func rebound() *failure {
	return &failure{
		http.StatusForbidden, "destination_ip_prohibited", 0,
		"A public name leads to a private network here, which a hostile page could make use of. If it is meant to, allow that " +
			"network by allow_destinations in the configuration, for example [\"192.168.1.0/24\"], or use the address instead of the name.",
	}
}

func timedOut(cause string) *failure {
	return &failure{
		http.StatusGatewayTimeout, cause, 0,
		"The server did not answer in time. Try again; \"tributary status\" shows how the links are.",
	}
}

// classify says what the client is told about an error of the Transport.
func classify(err error) *failure {
	var dial *link.DialError
	attempt, attempted := transport.FailureOf(err)
	switch {
	case errors.Is(err, link.ErrOffLink):
		return badGateway("destination_ip_unroutable", "The server belongs to the network of an interface that is not one of the "+
			"links now, such as a VPN or a bridge of containers. Exempt it from the proxy (no_proxy); \"tributary links\" shows the "+
			"interfaces and how to use them.")
	case errors.Is(err, link.ErrUpstreamRefused):
		return badGateway("destination_ip_prohibited", "The upstream proxy of a link (via in the configuration) does not allow the "+
			"destination, and no other link reaches it.")
	case errors.Is(err, link.ErrRebound):
		return rebound()
	case errors.Is(err, link.ErrDenied), errors.As(err, &dial) && dial.Op == link.OpRefuse:
		return prohibited()
	case errors.Is(err, transport.ErrNoLink):
		return unavailable("destination_unavailable", 0, "No usable network link is up. "+
			"\"tributary links\" shows the links and why they are not used.")
	case attempt.Cause == transport.Unbound, errors.As(err, new(*link.BindError)):
		return unavailable("proxy_configuration_error", 0, "The connection could not be bound to a network link. "+
			"\"tributary doctor\" shows what is missing.")
	case attempt.Cause == transport.Full:
		return unavailable("connection_limit_reached", 0, "All connections to this host that max_connections_per_host in the "+
			"configuration allows are in use. Try again when a download from it has ended, or allow more.")
	case attempt.Cause == transport.Busy:
		return unavailable("destination_unavailable", attempt.RetryAfter, "The server is busy. Try again later.")
	}
	if f := classifyNetwork(err); f != nil {
		return f
	}
	if !attempted {
		return badGateway("connection_terminated", "The server could not be reached, or ended the connection before its "+
			"answer. Try again.")
	}
	switch attempt.Cause {
	case transport.Silent:
		return timedOut("http_response_timeout")
	case transport.Unreachable:
		return badGateway("destination_unavailable", "The server could not be reached. Check the address and try again.")
	case transport.Broken:
		return badGateway("connection_terminated", "The server ended the connection before its answer. Try again.")
	case transport.Changed:
		return badGateway("http_response_incomplete", "The object changed while it was fetched. Try again.")
	case transport.Inconsistent:
		return badGateway("http_protocol_error", "The server's answers do not fit together. Try again.")
	}
	return badGateway("proxy_internal_error", "The download failed. Try again.")
}

// classifyNetwork looks for the errors of package net and of TLS; nil if there is none.
func classifyNetwork(err error) *failure {
	var dns *net.DNSError
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns) && dns.IsTimeout:
		return timedOut("dns_timeout")
	case errors.As(err, &dns), errors.Is(err, link.ErrNoServer):
		return badGateway("dns_error", "The host name could not be resolved. Check its spelling; "+
			"\"tributary links\" shows the DNS servers of each link.")
	case errors.As(err, &cert), errors.As(err, new(x509.HostnameError)), errors.As(err, new(x509.UnknownAuthorityError)),
		errors.As(err, new(x509.CertificateInvalidError)):
		return badGateway("tls_certificate_error", "The server's certificate is not valid for this host. Use an https proxy "+
			"setting (CONNECT) to see the certificate in the client.")
	case errors.As(err, &alert), errors.As(err, &record):
		return badGateway("tls_protocol_error", "The server does not speak TLS as it should. Check scheme and port.")
	case errors.Is(err, syscall.ECONNREFUSED):
		return badGateway("connection_refused", "The server refused the connection. Check the port and that the server runs.")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return badGateway("destination_ip_unroutable", "No route leads to the server. "+
			"\"tributary links\" shows the links and their addresses.")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return timedOut("connection_timeout")
	case errors.Is(err, syscall.ECONNRESET):
		return badGateway("connection_terminated", "The server reset the connection before its answer. Try again.")
	}
	return nil
}

// refuse answers with f and closes the connection: what follows on it may be the rest of something bad (R188).
func (x *exchange) refuse(f *failure) {
	h := x.w.Header()
	clear(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Proxy-Status", "tributary; error="+f.cause)
	h.Set("Connection", "close")
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

// fail answers for an error that came before the head of an answer.
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
	x.p.Log.Debug("request failed", "method", x.r.Method, "err", err)
	if x.upload != nil && x.upload.broken.Load() {
		x.refuse(badRequest("The request's content broke off or is malformed. Send it again."))
		return
	}
	x.refuse(classify(err))
}

// help answers a request to the proxy port itself (R4).
func (x *exchange) help() {
	addr := "127.0.0.1:8080"
	if local, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		addr = local.String()
	}
	x.refuse(badRequest("this is an HTTP proxy, not a web server. Tell programs to use it:\n\n" +
		"    export http_proxy=http://" + addr + " https_proxy=http://" + addr + " no_proxy=localhost,127.0.0.0/8,::1\n\n" +
		"or for one download: curl -x http://" + addr + " URL\n" +
		"\"tributary status\" shows what it is doing."))
}
