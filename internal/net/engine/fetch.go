package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// Target names an object: the server to connect to and the resource to request there.
type Target struct {
	Scheme string // "http" or "https"
	Host   string // authority as the client spelled it: the Host field
	Addr   string // "host:port" to connect to, default port filled in
	Path   string // path and query, byte for byte as the client sent them (RFC 9110 section 7.7)
}

// cost returns the memory of a transfer from this origin in addition to its blocks.
func (t Target) cost() int64 {
	if t.Scheme == "https" {
		return perSecureTransfer
	}
	return perTransfer
}

// name returns the last part of the path, decoded, without the query.
func (t Target) name() string {
	at, _, _ := strings.Cut(t.Path, "?")
	at = path.Base(at)
	if plain, err := url.PathUnescape(at); err == nil {
		at = plain
	}
	return strings.ToValidUTF8(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, at[:min(len(at), maxName)]), "")
}

// maxName bounds the name of an object, in bytes.
const maxName = 200

// Opener opens connections to origins. Package origin implements it.
type Opener interface {
	// Open returns a connection to t's origin that uses only link l, DNS included. It may be one that an earlier
	// transfer released. A failure is an *AttemptError with Outcome Unreachable or Unbound.
	Open(ctx context.Context, l link.Link, t Target) (Conn, error)
	// Warm hands over a connection over l to addr ("host:port") on which nothing was sent: an Open within the next
	// seconds may use it instead of a new one.
	Warm(l link.Link, addr string, c net.Conn, i link.Info)
}

// Conn is an HTTP connection to one origin over one link, owned by one transfer at a time. Requests may be pipelined:
// several Send calls may precede their Next calls. Responses arrive in the order of the requests, also over HTTP/2.
// Send and Next may run in different goroutines; neither may be called concurrently with itself.
type Conn interface {
	// Send writes one request.
	Send(RangeRequest) error
	// Next reads the head of the next answer and checks it against its RangeRequest. Interim answers (1xx) go to the
	// RangeRequest's Interim. The previous answer's body must have been read to io.EOF. A failure is an *AttemptError;
	// when the answer is intact but not wanted (Unwanted, Changed, ...), the RangeResponse is returned with it.
	Next() (*RangeResponse, error)
	// Cut ends the answer to the request with this ID at offset end, or at the offset read so far, if that is greater.
	// It reports whether the body ends there: an answer that has been read to its end is not cut, and HTTP/1.1 cannot
	// cut. It may be called at any time and does not block.
	Cut(id uint32, end int64) bool
	// Info describes how the connection was made.
	Info() ConnInfo
	// Sample returns the state of the path, false if it is not known. It does not block.
	Sample() (PathSample, bool)
	// Received returns the counters of what the connection received, whoever used it; false if they are unknown. It
	// does not block.
	Received() (link.Counters, bool)
	// Behind reports whether many bytes wait to be read although a read returned few: over TLS, a read returns at most
	// one record. It does not block.
	Behind() bool
	// Release gives the connection back for later transfers if it is clean (every answer read to its end, kept alive by
	// both sides), and closes it otherwise.
	Release()
	// Close ends the connection at once; a blocked Send, Next or body read returns an error.
	Close()
}

// PathSample is the state of a connection's path.
type PathSample = transfer.PathSample

// ConnInfo describes how a connection was made.
type ConnInfo struct {
	Reused bool          // an earlier transfer used it
	RTT    time.Duration // round-trip time to the origin, 0 if unknown
	Remote string        // address of the origin, "" if unknown
	// Multiplexed says that requests may be pipelined without trying: each is a stream of its own (HTTP/2).
	Multiplexed bool
}

// RangeRequest is one GET.
type RangeRequest struct {
	ID     uint32 // for Cut, unique on the connection
	Target Target
	Header http.Header // end-to-end fields of the client without Host, Range and If-Range; not changed by the Conn

	// Range is the part asked for; the zero Range asks for the whole object without a Range field. An End of
	// math.MaxInt64 asks for an open range ("bytes=a-").
	Range   segment.Range
	IfRange string // value of the If-Range field, "" for none

	// Want is the version that the answer must belong to; nil for the first request of a transfer, whose answer is
	// accepted as it is.
	Want *Identity

	// Interim, if not nil, is called for every interim answer.
	Interim func(status int, h http.Header)
}

// RangeResponse is a response whose body has not been read.
type RangeResponse struct {
	*http.Response
	Range segment.Range // offsets of the body's bytes; End is -1 if the length is unknown
	ID    Identity      // version that the answer belongs to
	// Unfit says why other answers may not be joined to this one (RFC 9110 section 15.3.7.3), None if they may; only
	// for first answers.
	Unfit opening.Reason
}

// Identity is one version of an object.
type Identity = opening.Identity

// AttemptError is the failure of one attempt.
type AttemptError struct {
	Op         string // "dial", "send", "head", "body", "check"
	Link       string
	Outcome    fault.Outcome
	RetryAfter time.Duration // for Busy, 0 if the origin named none
	Err        error
}

func (e *AttemptError) Error() string {
	return fmt.Sprintf("%s over %s: %v", e.Op, e.Link, e.Err)
}

func (e *AttemptError) Unwrap() error { return e.Err }
