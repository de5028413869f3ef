package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/transfer"
)

// ErrNoLink says that no link is up that the request may use.
var ErrNoLink = engine.ErrNoLink

// Cause is why a request failed that reached at least one link, as far as the caller can act on it.
type Cause uint8

// The causes.
const (
	Broken       Cause = iota + 1 // the connection ended before its answer, or in the middle of it
	Busy                          // the origin answered 429 or 503, see Failure.RetryAfter
	Changed                       // the object became another version while it was fetched
	Inconsistent                  // the origin's answers do not fit together
	Internal                      // the fault lies with neither the link nor the origin
	Silent                        // the origin gave no answer in time
	Unbound                       // the socket could not be bound to the link
	Unreachable                   // no connection: the dial, DNS or TLS failed
	Full                          // the host has as many connections as it may have (max_connections_per_host)
)

// Failure describes why a request failed.
type Failure struct {
	Cause      Cause
	Link       string        // over which the last attempt was made
	RetryAfter time.Duration // what the origin asked for; 0 = nothing
}

// Origin reports whether the origin is to blame: another link would not have helped.
func (f Failure) Origin() bool {
	return f.Cause == Busy || f.Cause == Changed || f.Cause == Inconsistent
}

// LinkError is the error of a request that went over one link as it is, or of reading the Body of its answer: it names the
// link, and Err is what net/http says.
type LinkError struct {
	Link string
	Err  error
}

// Error implements error.
func (e *LinkError) Error() string { return fmt.Sprintf("request over %s: %v", e.Link, e.Err) }

// Unwrap returns Err.
func (e *LinkError) Unwrap() error { return e.Err }

// onLink returns err with the link that it came over, unless err names one, or there was none.
func onLink(err error, name string) error {
	if name == "" || errors.As(err, new(*engine.AttemptError)) {
		return err
	}
	return &LinkError{name, err}
}

// FailureOf returns why a request failed, or reading the Body of its answer. It reports false for an error that no attempt
// over a link ended with, such as ErrNoLink or that of a context.
func FailureOf(err error) (Failure, bool) {
	var a *engine.AttemptError
	if !errors.As(err, &a) {
		return Failure{}, false
	}
	f := Failure{Cause: Internal, Link: a.Link, RetryAfter: a.RetryAfter}
	switch a.Outcome {
	case transfer.Short, transfer.Reset, transfer.Unanswered, transfer.Stale:
		f.Cause = Broken
	case transfer.Busy:
		f.Cause = Busy
	case transfer.Changed:
		f.Cause = Changed
	case transfer.Unwanted, transfer.NoRange, transfer.BadRange:
		f.Cause = Inconsistent
	case transfer.Silence:
		f.Cause = Silent
	case transfer.Unbound:
		f.Cause = Unbound
	case transfer.Unreachable:
		f.Cause = Unreachable
	case transfer.NoSlot:
		f.Cause = Full
	}
	return f, true
}
