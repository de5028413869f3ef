package origin

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"strings"
)

const (
	// bufferSize is the size of the read buffer in bytes. It is as small as net/http's chunk reader allows, because a
	// body read of at least this size goes from the socket into the caller's slice without a copy once the buffer is
	// empty.
	bufferSize = 4 << 10
	// MaxHead bounds the head of one answer, interim answers included, in bytes.
	MaxHead = 256 << 10
	// MaxInterim is the maximum number of interim responses (1xx) before a final response.
	MaxInterim = 32
)

var errHeadTooLong = errors.New("the response head is too long")

// wire is the read side of a connection below its bufio.Reader. It hands on each head as a whole, repaired, and bounds
// its size.
type wire struct {
	conn net.Conn
	err  error // first error of conn, sticky

	reading  bool // a head is being read
	in       intake
	limit    int    // of its length
	raw      []byte // the complete head as received
	repaired []byte // as handed on
	out      []byte // bytes to hand on before those of conn
}

func (w *wire) Read(p []byte) (int, error) {
	for w.reading {
		raw, err := w.in.head()
		switch {
		case err != nil:
			return 0, err
		case len(raw) > w.limit || raw == nil && len(w.in.raw) >= w.limit:
			return 0, errHeadTooLong
		case raw == nil:
			n, err := w.receive(p)
			if w.in.raw = append(w.in.raw, p[:n]...); err != nil && n == 0 {
				return 0, err
			}
			continue
		}
		if w.repaired, err = repair(raw); err != nil {
			return 0, err
		}
		w.raw, w.reading = raw, false
		w.out = append(bytes.Clone(w.repaired), w.in.raw[len(raw):]...)
	}
	if len(w.out) > 0 {
		n := copy(p, w.out)
		if w.out = w.out[n:]; len(w.out) == 0 {
			w.out = nil // a body may take long
		}
		return n, nil
	}
	return w.receive(p)
}

func (w *wire) receive(p []byte) (int, error) {
	n, err := w.conn.Read(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// begin starts a head of at most limit bytes; the bytes in br belong to it.
func (w *wire) begin(br *bufio.Reader, limit int) {
	buffered, _ := br.Peek(br.Buffered())
	w.in = intake{raw: append(bytes.Clone(buffered), w.out...)}
	br.Reset(w)
	w.reading, w.limit, w.out = true, limit, nil
}

// end frees the memory of the head.
func (w *wire) end() { w.reading, w.in, w.raw, w.repaired = false, intake{}, nil, nil }

// ahead returns how many received bytes wait in br and here.
func (w *wire) ahead(br *bufio.Reader) int { return br.Buffered() + len(w.out) }

// hasField reports whether a raw head contains a field line with this name. It finds fields that net/http has silently
// removed, so a folded line that looks like one counts as well.
func hasField(raw []byte, name string) bool {
	for line := range bytes.Lines(raw) {
		if field, _, ok := bytes.Cut(line, []byte(":")); ok && strings.EqualFold(string(bytes.TrimSpace(field)), name) {
			return true
		}
	}
	return false
}
