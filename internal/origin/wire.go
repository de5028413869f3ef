package origin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
)

const (
	// bufferSize is the size of the read buffer in bytes. It is as small as net/http's chunk reader allows, because a body read of
	// at least this size goes from the socket into the caller's slice without a copy once the buffer is empty.
	bufferSize = 4 << 10
	// maxHead bounds the head of one answer, interim answers included, in bytes.
	maxHead = 256 << 10
	// MaxInterim is the maximum number of interim responses (1xx) before a final response.
	MaxInterim = 32
)

var errHeadTooLong = errors.New("the response head is too long")

// wire is the read side of a connection below its bufio.Reader. While a head is read it keeps a copy of the raw bytes and
// bounds their number.
type wire struct {
	conn    net.Conn
	reading bool // a head is being read
	head    []byte
	limit   int
	err     error // first error of conn, sticky
}

func (w *wire) Read(p []byte) (int, error) {
	if w.reading && len(w.head) >= w.limit {
		return 0, errHeadTooLong
	}
	n, err := w.conn.Read(p)
	if w.reading {
		w.head = append(w.head, p[:n]...)
	}
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// begin starts a head of at most limit bytes; the bytes in br belong to it.
func (w *wire) begin(br *bufio.Reader, limit int) {
	buffered, _ := br.Peek(br.Buffered())
	w.reading, w.limit = true, limit
	w.head = append(w.head[:0], buffered...)
}

// end returns the raw bytes consumed since begin; they are valid until the next begin.
func (w *wire) end(br *bufio.Reader) []byte {
	w.reading = false
	return w.head[:len(w.head)-br.Buffered()]
}

// hasField reports whether a raw head contains a field line with this name. It finds fields that net/http has silently removed, so
// a folded line that looks like one counts as well.
func hasField(raw []byte, name string) bool {
	for line := range bytes.Lines(raw) {
		if field, _, ok := bytes.Cut(line, []byte(":")); ok && strings.EqualFold(string(bytes.TrimSpace(field)), name) {
			return true
		}
	}
	return false
}

// tail records the end of a TCP stream below TLS. crypto/tls reports a cut between two records as a plain io.EOF, the same as a
// proper end (close_notify); but after a proper end it reads no further (RFC 9112 section 9.8).
type tail struct {
	net.Conn
	cut bool // the stream ended before TLS did; owned by the reader
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if err == io.EOF {
		t.cut = true
	}
	return n, err
}
