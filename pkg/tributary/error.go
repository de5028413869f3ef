package tributary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/transport"
)

// What an Error may be. Errors of the network, of DNS and of TLS can be found with errors.As, too.
var (
	ErrClosed       = errors.New("tributary: the Transport is closed")
	ErrNoLink       = errors.New("no usable link is up")
	ErrUnreachable  = errors.New("the server cannot be reached")
	ErrTimeout      = errors.New("no link brought anything in time")
	ErrBusy         = errors.New("the server is busy") // 429 or 503 to every range
	ErrChanged      = errors.New("the object changed while it was fetched")
	ErrInconsistent = errors.New("the server's responses contradict each other")
	ErrNotAllowed   = errors.New("the address is not reached over this link")
	ErrBind         = errors.New("the connection cannot be bound to the link")
)

// Error is why a request failed, or its content broke off. It unwraps to one of the errors above, if one fits, and to the
// error beneath.
type Error struct {
	Link string // that the last attempt used, "" = none
	Kind error  // one of the errors above; nil = none of them
	Err  error
}

// Error implements error.
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

// StatusError is a response to Download that has no content to write.
type StatusError struct{ StatusCode int }

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("tributary: the server answers %d %s", e.StatusCode, http.StatusText(e.StatusCode))
}

// kinds are the errors that causes stand for.
var kinds = map[transport.Cause]error{
	transport.Unreachable: ErrUnreachable, transport.Unbound: ErrBind, transport.Silent: ErrTimeout, transport.Busy: ErrBusy,
	transport.Changed: ErrChanged, transport.Inconsistent: ErrInconsistent,
}

// wrap makes an *Error, unless err is io.EOF or a context's.
func wrap(err error) error {
	if err == nil || err == io.EOF || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &Error{Err: err}
	if f, ok := transport.FailureOf(err); ok {
		e.Link, e.Kind = f.Link, kinds[f.Cause]
	}
	switch {
	case errors.Is(err, transport.ErrNoLink):
		e.Kind = ErrNoLink
	case errors.Is(err, link.ErrDenied), errors.Is(err, link.ErrOffLink), errors.Is(err, link.ErrRebound):
		e.Kind = ErrNotAllowed
	case errors.As(err, new(*link.BindError)):
		e.Kind = ErrBind
	}
	return e
}
