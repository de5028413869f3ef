package origin

import (
	"encoding/binary"
	"io"
	"net"
)

// tail is the connection below TLS. It records the end of the stream: crypto/tls reports a cut between two records as a
// plain io.EOF, the same as a proper end (close_notify); but after a proper end it reads no further (RFC 9112 section
// 9.8).
//
// It hands over one record at a time (RFC 8446 section 5.1). If crypto/tls gets the beginning of the next one, too, its
// buffer grows to more than two records, and it keeps that as long as the connection is open.
type tail struct {
	net.Conn
	cut bool // the stream ended before TLS did; owned by the reader

	header [recordHeader]byte
	known  int // bytes of the header that have arrived
	given  int // bytes of the header that were handed over
	left   int // bytes of the record to be handed over behind its header
}

const recordHeader = 5 // bytes: type, version (2), length of what follows (2)

// Read implements io.Reader. It reads the header of the next record together with the end of a record, and uses p as
// scratch space for that.
func (t *tail) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if t.given == recordHeader && t.left > 0 {
		return t.readBody(p)
	}
	if t.given == recordHeader { // an empty record
		t.known, t.given = 0, 0
	}
	if t.given == t.known {
		n, err := t.Conn.Read(p[:min(len(p), recordHeader-t.known)])
		t.learn(p[:n])
		t.given += n
		t.ends(err)
		return n, err
	}
	n := copy(p, t.header[t.given:t.known])
	t.given += n
	return n, nil
}

func (t *tail) readBody(p []byte) (int, error) {
	n, err := t.Conn.Read(p[:min(len(p), t.left+recordHeader)])
	t.ends(err)
	if n < t.left {
		t.left -= n
		return n, err
	}
	body := t.left
	t.known, t.given, t.left = 0, 0, 0
	t.learn(p[body:n])
	return body, err
}

// learn takes bytes of a header that have arrived.
func (t *tail) learn(b []byte) {
	t.known += copy(t.header[t.known:], b)
	if t.known == recordHeader {
		t.left = int(binary.BigEndian.Uint16(t.header[3:]))
	}
}

func (t *tail) ends(err error) {
	if err == io.EOF {
		t.cut = true
	}
}
