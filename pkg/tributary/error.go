package tributary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Errors that an [Error] unwraps to, except ErrClosed, which is returned unwrapped.
var (
	ErrClosed       = errors.New("tributary: the Transport is closed")
	ErrNoLink       = errors.New("no usable link is up")
	ErrUnreachable  = errors.New("the server cannot be reached") // DNS, the connection or TLS failed
	ErrBroken       = errors.New("the connection broke")         // before the response was complete
	ErrTimeout      = errors.New("no link delivered anything in time")
	ErrBusy         = errors.New("the server is busy") // 429 or 503 to every range
	ErrChanged      = errors.New("the object changed during the download")
	ErrInconsistent = errors.New("the server's responses contradict each other")
	ErrNotAllowed   = errors.New("the address cannot be reached over this link")
	ErrBind         = errors.New("the connection cannot be bound to the link")
)

// Error describes why a request failed or its content broke off. By then, the other links were tried if that was safe.
// It unwraps to Kind and to Err, so errors.Is finds the errors above, and errors.As finds those of packages net,
// crypto/tls and crypto/x509.
type Error struct {
	Link string // link of the last attempt; "" if there was none
	Kind error  // one of the errors above; nil if none of them fits
	Err  error  // underlying error
}

// Error implements error. The text contains the name of the link.
func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Kind != nil && !errors.Is(e.Err, e.Kind) {
		text = fmt.Sprintf("%v: %s", e.Kind, text)
	}
	return "tributary: " + text
}

// Unwrap returns Kind and Err.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// Timeout reports whether a time limit was exceeded, like the method of [net.Error].
func (e *Error) Timeout() bool {
	var beneath net.Error
	return e.Kind == ErrTimeout || errors.As(e.Err, &beneath) && beneath.Timeout()
}

// StatusError is the error of [Transport.Download] for a response that has no content to write.
type StatusError struct{ StatusCode int }

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("tributary: the server answers %d %s", e.StatusCode, http.StatusText(e.StatusCode))
}

// kinds maps outcomes to the errors that they stand for.
var kinds = map[fault.Outcome]error{
	fault.Unreachable: ErrUnreachable, fault.UnknownName: ErrUnreachable, fault.SilentDNS: ErrUnreachable,
	fault.BadCertificate: ErrUnreachable, fault.WrongClock: ErrUnreachable, fault.BadTLS: ErrUnreachable,
	fault.PortClosed: ErrUnreachable,
	fault.NoRoute:    ErrUnreachable, fault.Timeout: ErrUnreachable,

	fault.Short: ErrBroken, fault.Reset: ErrBroken, fault.Unanswered: ErrBroken, fault.Stale: ErrBroken,
	fault.Silence: ErrTimeout, fault.Busy: ErrBusy, fault.Changed: ErrChanged,
	fault.Unwanted: ErrInconsistent, fault.NoRange: ErrInconsistent, fault.BadRange: ErrInconsistent,
	fault.Differs:   ErrInconsistent,
	fault.Malformed: ErrInconsistent,
	fault.NoLink:    ErrNoLink, fault.Unbound: ErrBind,
	fault.Denied: ErrNotAllowed, fault.Rebound: ErrNotAllowed, fault.OffLink: ErrNotAllowed,
	fault.UpstreamDenied: ErrNotAllowed,
}

// wrap returns the error of a request: the context's own error if ctx has ended, otherwise an *Error. It returns io.EOF
// unchanged.
func wrap(ctx context.Context, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := transport.FailureOf(err)
	return &Error{Link: f.Link, Kind: kinds[f.Outcome], Err: err}
}
