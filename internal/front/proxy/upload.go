package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// upload is the content of a request on its way to the origin. One goroutine at a time reads it: the one that has turn.
type upload struct {
	x      *exchange
	ended  atomic.Bool // read to its end
	broken atomic.Bool // the client's side failed

	turn chan struct{} // holds one while nobody reads
	pace pace          // of the reader

	mu        sync.Mutex
	lingering bool      // only linger reads, and sets the deadline
	until     time.Time // deadline of the present read; zero = none

	// A client that sent Expect holds its content back until it sees a 100.
	expect  bool          // no 100 yet; changed by the reader only
	pending atomic.Bool   // an answer of the origin has begun, and it is not known whether it is interim
	told    chan struct{} // an interim answer was passed on; buffers one
}

// follow makes trace report the origin's answer to an Expect. net/http starts to read the content when a 100 arrived,
// when it has waited long enough for one, and also when a final answer arrived instead; only in the last case nothing
// may be read.
func (u *upload) follow(trace *httptrace.ClientTrace) {
	pass := trace.Got1xxResponse
	trace.GotFirstResponseByte = func() { u.pending.Store(true) }
	trace.Got1xxResponse = func(code int, h textproto.MIMEHeader) error {
		err := pass(code, h)
		u.pending.Store(false)
		select {
		case u.told <- struct{}{}:
		default:
		}
		return err
	}
}

// Read reads from the client. With expect the client first gets a 100 if the origin's was not passed on, or net/http's
// server would send one on its own (R56).
func (u *upload) Read(p []byte) (int, error) {
	<-u.turn
	defer func() { u.turn <- struct{}{} }()
	if u.ended.Load() { // the connection may serve the next request, whose deadlines are its own
		return 0, io.EOF
	}
	if u.expect {
		if err := u.proceed(); err != nil {
			<-u.x.over // an error now would break the connection on which the answer is still coming
			return 0, err
		}
		u.expect = false
	}
	from := time.Now()
	if !u.deadline(from.Add(u.pace.left())) {
		return 0, errSettled
	}
	n, err := u.x.r.Body.Read(p)
	u.pace.add(n, time.Since(from))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		u.deadline(time.Time{}) // the server continues to watch the connection
	}
	switch {
	case err == io.EOF:
		u.cleanTrailer()
		u.ended.Store(true)
	case err != nil && !u.late():
		u.broken.Store(true)
	}
	return n, err
}

// deadline bounds the reads of the content; false if the exchange is over and nothing may be read.
func (u *upload) deadline(t time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.lingering {
		u.until = t
		_ = u.x.rc.SetReadDeadline(t) // a connection without deadlines is not a TCP connection
	}
	return !u.lingering
}

// late reports whether waiting for the content has taken too long. The server ends the request's context before the
// read that notices returns, so the time decides, not the context's error.
func (u *upload) late() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.until.IsZero() && !time.Now().Before(u.until)
}

// proceed returns nil when the client knows that it may send.
func (u *upload) proceed() error {
	for u.pending.Load() {
		select {
		case <-u.told:
		case <-u.x.settled:
			return errSettled
		}
	}
	return u.x.tell(http.StatusContinue, nil)
}

// Close does nothing: the server closes the body it made.
func (u *upload) Close() error { return nil }

// cleanTrailer removes from the request's trailer the fields that must not be forwarded.
func (u *upload) cleanTrailer() {
	for name := range u.x.r.Trailer {
		if !trailerAllowed(name, u.x.r.Header["Connection"]) {
			delete(u.x.r.Trailer, name)
		}
	}
}

// lingerTime is how long a client may keep sending unwanted content, so that it can read the answer before the
// connection is closed (R67).
const lingerTime = 500 * time.Millisecond

// linger discards incoming content, for a while, when the answer has been sent. It ends a read by a goroutine that
// outlives the exchange: the server would end that read, too, but lift the deadline and then read on without one.
func (x *exchange) linger() {
	u := x.upload
	if u == nil || u.ended.Load() {
		return
	}
	_ = x.rc.Flush() // the client may be gone
	u.mu.Lock()
	u.lingering = true
	_ = x.rc.SetReadDeadline(time.Now().Add(lingerTime)) // a connection without deadlines is not a TCP connection
	u.mu.Unlock()
	<-u.turn
	defer func() { u.turn <- struct{}{} }()
	if !u.expect { // else it holds its content back, and a read would ask for it
		_, _ = io.Copy(io.Discard, x.r.Body)
	}
}
