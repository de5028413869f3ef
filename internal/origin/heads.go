package origin

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

// heads is a connection of a net/http transport that keeps a copy of the raw heads that arrive for a request, and bounds
// their number of bytes. It finds where a head ends and leaves all parsing to net/http.
type heads struct {
	net.Conn

	mu      sync.Mutex
	reading bool
	raw     []byte   // of the head that is being read
	line    int      // where its present line begins
	looked  int      // how much of it has been looked at
	whole   [][]byte // those that came before it, oldest first
	size    int      // bytes of whole
}

// begin makes what arrives from now on the heads of the next answer.
func (h *heads) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading, h.raw, h.line, h.looked, h.whole, h.size = true, nil, 0, 0, nil, 0
}

// next returns the oldest head that it has not returned yet.
func (h *heads) next() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.whole) == 0 {
		return nil
	}
	raw := h.whole[0]
	h.whole = h.whole[1:]
	return raw
}

func (h *heads) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reading {
		h.raw = append(h.raw, p[:n]...)
		for h.reading && h.take() {
		}
		if h.size+len(h.raw) > maxHead {
			return 0, errHeadTooLong
		}
	}
	return n, err
}

// take looks at the next line of raw, and reports whether there was a whole one.
func (h *heads) take() bool {
	i := bytes.IndexByte(h.raw[h.looked:], '\n')
	if i < 0 {
		h.looked = len(h.raw)
		return false
	}
	end := h.looked + i + 1
	line := h.raw[h.line:end]
	h.line, h.looked = end, end
	if len(bytes.TrimRight(line, "\r\n")) == 0 {
		head := h.raw[:end:end]
		h.whole, h.size = append(h.whole, head), h.size+len(head)
		h.raw, h.line, h.looked = h.raw[end:], 0, 0
		if h.reading = announces(head); !h.reading {
			h.raw = nil
		}
	}
	return true
}

// announces reports whether another head follows this one: that of an answer 1xx, but for 101.
func announces(head []byte) bool {
	_, rest, _ := bytes.Cut(head, []byte(" "))
	rest = bytes.TrimLeft(rest, " ")
	return len(rest) > 2 && rest[0] == '1' && !bytes.HasPrefix(rest, []byte("101"))
}

// watch follows one exchange of a net/http transport.
type watch struct {
	mu       sync.Mutex
	conn     *heads
	interims int
	bad      error
}

// context returns a context for the request.
func (w *watch) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.conn = got.Conn.(*heads)
			w.conn.begin()
		},
		// Called before the hook of the caller, which gets the same map.
		Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			restore(http.Header(header), w.conn.next())
			if w.interims++; w.interims > MaxInterim {
				w.bad = errInterim
			} else if !tokens(http.Header(header)) {
				w.bad = errFieldName
			}
			return w.bad
		},
	})
}

// judge returns what is wrong with the exchange's answer, and gives it the head that the origin sent.
func (w *watch) judge(resp *http.Response) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	restore(resp.Header, w.conn.next())
	if w.bad == nil && !tokens(resp.Header) {
		w.bad = errFieldName
	}
	return w.bad
}

// restore puts back the Connection field that net/http removes from a head when it says close, because other fields may
// be named there, and removes the Cache-Control that it adds.
func restore(header http.Header, raw []byte) {
	if len(header["Connection"]) == 0 && hasField(raw, "Connection") {
		_, fields, _ := bytes.Cut(raw, []byte("\n"))
		r := textproto.NewReader(bufio.NewReader(bytes.NewReader(fields)))
		if all, err := r.ReadMIMEHeader(); err == nil {
			header["Connection"] = all["Connection"]
		}
	}
	if len(header["Pragma"]) > 0 && !hasField(raw, "Cache-Control") {
		delete(header, "Cache-Control")
	}
}
