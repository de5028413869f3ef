package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// ErrNoLink means that no link that the request may use is up.
var ErrNoLink = engine.ErrNoLink

// Failure describes why a request failed.
type Failure struct {
	Outcome    fault.Outcome
	Link       string        // link of the last attempt; "" if there was no attempt
	RetryAfter time.Duration // delay that the origin asked for; 0 = none
}

// LinkError is the error of a request that went over one link as it is, or of reading the Body of its response: Link is
// the link's name, and Err is net/http's error.
type LinkError struct {
	Link string
	Err  error
}

// Error implements error.
func (e *LinkError) Error() string { return fmt.Sprintf("request over %s: %v", e.Link, e.Err) }

// Unwrap returns Err.
func (e *LinkError) Unwrap() error { return e.Err }

// onLink returns err with the name of its link, unless err already names one, or there was no link.
func onLink(err error, name string) error {
	if name == "" || errors.As(err, new(*engine.AttemptError)) {
		return err
	}
	return &LinkError{name, err}
}

// FailureOf returns why a request, or reading the Body of its response, failed. If the error does not come from an
// attempt over a link, like that of a context, the Outcome is Unknown unless the error itself says more.
func FailureOf(err error) Failure {
	f := Failure{Outcome: fault.Unknown}
	if a := (*engine.AttemptError)(nil); errors.As(err, &a) {
		f = Failure{a.Outcome, a.Link, a.RetryAfter}
	}
	if o, ok := decided(err); ok {
		f.Outcome = o
	} else if f.Outcome != fault.Unbound && f.Outcome != fault.NoSlot && f.Outcome != fault.Busy {
		if o, ok := network(err); ok {
			f.Outcome = o
		}
	}
	if l := (*LinkError)(nil); errors.As(err, &l) {
		f.Link = l.Link
		if f.Outcome == fault.Unknown && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			errors.As(err, new(*net.OpError))) {
			f.Outcome = fault.Reset
		}
	}
	return f
}

// decided looks for errors which mean that nothing was sent.
func decided(err error) (fault.Outcome, bool) {
	var dial *link.DialError
	switch {
	case errors.Is(err, link.ErrOffLink):
		return fault.OffLink, true
	case errors.Is(err, link.ErrUpstreamRefused):
		return fault.UpstreamDenied, true
	case errors.Is(err, link.ErrRebound):
		return fault.Rebound, true
	case errors.Is(err, link.ErrDenied), errors.As(err, &dial) && dial.Op == link.OpRefuse:
		return fault.Denied, true
	case errors.Is(err, ErrNoLink):
		return fault.NoLink, true
	case errors.As(err, new(*link.BindError)):
		return fault.Unbound, true
	}
	return 0, false
}

// alert reports whether a TLS handshake ended with an alert, whose type crypto/tls does not export.
func alert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

// network looks for the errors of package net, of TLS and of HTTP.
func network(err error) (fault.Outcome, bool) {
	var dns *net.DNSError
	var timeout net.Error
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &dns) && dns.IsTimeout:
		return fault.SilentDNS, true
	case errors.As(err, &dns), errors.Is(err, link.ErrNoServer):
		return fault.UnknownName, true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return fault.WrongClock, true
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.HostnameError)),
		errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.CertificateInvalidError)):
		return fault.BadCertificate, true
	case errors.Is(err, origin.ErrMalformed):
		return fault.Malformed, true
	case errors.As(err, new(tls.AlertError)), errors.As(err, new(tls.RecordHeaderError)), alert(err):
		return fault.BadTLS, true
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.PortClosed, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fault.NoRoute, true
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.Timeout, true
	case errors.Is(err, syscall.ECONNRESET):
		return fault.Reset, true
	}
	return 0, false
}
