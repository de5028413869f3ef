package origin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

// errUnasked means that an origin sent bytes before it could have received the request that they seem to answer (RFC
// 9112 section
// 6.3).
var errUnasked = errors.New("the origin sent unrequested bytes")

// HeadConn is a connection of a net/http transport that repairs the heads that arrive for a request, keeps a copy of
// them, and bounds their size. It leaves all parsing to net/http.
//
// It also ensures that bytes after an answer are not taken for the next answer. net/http gives a connection to the next
// request shortly before it checks its buffer for such bytes.
type HeadConn struct {
	net.Conn

	mu      sync.Mutex
	change  sync.Cond
	now     *record // of the exchange that uses the connection
	reading bool    // Read waits for bytes: all earlier ones were consumed
	closed  bool
	waiters int    // callers in begin
	out     []byte // bytes that net/http gets next
	err     error  // what it gets then
}

// NewHeadConn returns a HeadConn over a new connection.
func NewHeadConn(nc net.Conn) *HeadConn {
	h := &HeadConn{Conn: nc}
	h.change.L = &h.mu
	return h
}

// NetConn returns the connection that it reads, as that of a tls.Conn does.
func (h *HeadConn) NetConn() net.Conn { return h.Conn }

// Close implements net.Conn.
func (h *HeadConn) Close() error {
	h.mu.Lock()
	h.closed = true
	h.change.Broadcast()
	h.mu.Unlock()
	return h.Conn.Close()
}

// Write implements net.Conn.
func (h *HeadConn) Write(p []byte) (int, error) {
	h.mu.Lock()
	r := h.now
	if r != nil && r.early {
		h.mu.Unlock()
		return 0, errUnasked
	}
	if r != nil {
		r.sent = true
	}
	h.mu.Unlock()
	return h.Conn.Write(p)
}

// record holds the heads of one exchange. The connection's mu guards it: net/http may give the connection to the next
// exchange before this one has looked at its last head.
type record struct {
	sent    bool // at least the beginning of the request was sent
	early   bool // bytes arrived before that
	reading bool
	in      intake
	whole   [][]byte // complete heads, repaired, oldest first
	size    int      // their bytes as received
}

// begin returns the record of the bytes that arrive from now on. On a reused connection, it waits until net/http has
// looked at everything that arrived after the last answer, and has closed the connection if there was anything.
func (h *HeadConn) begin(ctx context.Context, reused bool) *record {
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.change.Broadcast()
	})
	defer stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiters++
	for reused && !h.reading && !h.closed && ctx.Err() == nil {
		h.change.Wait()
	}
	h.waiters--
	h.now = &record{reading: true}
	return h.now
}

// next returns the oldest head of a record that it has not returned yet.
func (h *HeadConn) next(r *record) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(r.whole) == 0 {
		return nil
	}
	raw := r.whole[0]
	r.whole = r.whole[1:]
	return raw
}

// unasked reports whether bytes arrived before the request was sent.
func (h *HeadConn) unasked(r *record) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return r.early
}

func (h *HeadConn) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if len(h.out) > 0 {
			n := copy(p, h.out)
			h.out = h.out[n:]
			return n, nil
		}
		if h.err != nil {
			return 0, h.err
		}
		n, err := h.receive(p)
		r := h.now
		if r != nil && n > 0 && !r.sent {
			r.early = true
		}
		if r == nil || !r.reading {
			return n, err
		}
		r.in.raw = append(r.in.raw, p[:n]...)
		if h.out, h.err = r.take(); h.err == nil && err != nil {
			h.out, h.err = append(h.out, r.in.raw...), err // net/http sees that a head has begun
		}
		if h.err == nil && r.size+len(r.in.raw) > MaxHead {
			h.out, h.err = nil, errHeadTooLong
		}
	}
}

// receive reads from the connection. h.mu is held, but released while it waits.
func (h *HeadConn) receive(p []byte) (int, error) {
	h.reading = true
	h.change.Broadcast()
	h.mu.Unlock()
	n, err := h.Conn.Read(p)
	h.mu.Lock()
	h.reading = false
	return n, err
}

// take returns the heads that are complete, repaired, and the bytes behind the final one.
func (r *record) take() (out []byte, err error) {
	for r.reading {
		raw, err := r.in.head()
		if raw == nil {
			return out, err
		}
		head, err := repair(raw)
		if err != nil {
			return out, err
		}
		head = bytes.Clone(head)
		r.whole, r.size = append(r.whole, head), r.size+len(raw)
		out = append(out, head...)
		r.reading = announces(head)
		r.in = intake{raw: bytes.Clone(r.in.raw[len(raw):])}
	}
	out = append(out, r.in.raw...)
	r.in = intake{}
	return out, nil
}

// announces reports whether another head follows this one: it does after a 1xx answer other than 101.
func announces(head []byte) bool {
	_, rest, _ := bytes.Cut(head, []byte(" "))
	rest = bytes.TrimLeft(rest, " ")
	return len(rest) > 2 && rest[0] == '1' && !bytes.HasPrefix(rest, []byte("101"))
}

// HeadWatch follows one exchange of a net/http transport.
type HeadWatch struct {
	mu       sync.Mutex
	conn     *HeadConn
	heads    *record
	interims int
	bad      error
}

// Context returns a context for the request.
func (w *HeadWatch) Context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.conn = got.Conn.(*HeadConn)
			w.heads = w.conn.begin(ctx, got.Reused)
		},
		// Called before the caller's hook, which gets the same map.
		Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			restore(http.Header(header), w.conn.next(w.heads))
			if w.interims++; w.interims > MaxInterim {
				w.bad = errInterim
			}
			return w.bad
		},
	})
}

// Judge returns an error if the exchange's answer is invalid, and gives the answer the head that the origin sent.
func (w *HeadWatch) Judge(resp *http.Response) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	restore(resp.Header, w.conn.next(w.heads))
	if w.bad == nil && w.conn.unasked(w.heads) {
		w.bad = errUnasked
	}
	return w.bad
}

// restore puts back the Connection field that net/http removes from a head with Connection: close, because other fields
// may be named there, and removes the Cache-Control that net/http adds.
func restore(header http.Header, raw []byte) {
	if len(header["Connection"]) == 0 && hasField(raw, "Connection") {
		_, fields, _ := bytes.Cut(raw, []byte("\n"))
		r := textproto.NewReader(bufio.NewReader(bytes.NewReader(fields)))
		if all, err := r.ReadMIMEHeader(); err == nil {
			header["Connection"] = all["Connection"]
		}
	}
	if raw != nil && len(header["Pragma"]) > 0 && !hasField(raw, "Cache-Control") {
		delete(header, "Cache-Control")
	}
}
