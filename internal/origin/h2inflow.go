package origin

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync"

	"golang.org/x/net/http2"
)

var errFlood = errors.New("the origin sends more than it was asked for")

// inflow is the TLS connection below an HTTP/2 connection. It bounds the bytes that http2 holds of bodies until somebody
// reads them; flow control alone lets an origin fill the windows, however little it was asked for. It counts as http2
// does: a DATA frame adds its length, and the WINDOW_UPDATE that http2 sends for the connection once bytes were read or
// discarded takes it away again.
//
// An origin that sends more than it was asked for loses its connection. While an answer may be longer than asked, inflow
// stops reading instead, so that TCP slows the origin down as it does over HTTP/1.1; PING goes unanswered for that time.
// This cannot deadlock: h2conn asks for answers of any length only when they are next to be read, and judges a head
// without reading on.
type inflow struct {
	*tls.Conn
	in, out frameScanner

	mu     sync.Mutex
	change sync.Cond
	held   int64 // bytes of DATA, padding included
	asked  int64 // how much may be held
	open   bool  // an answer may be longer than asked
	closed bool
}

// slack is how much may be held beyond the requested bytes: bytes that http2 is about to discard, and up to 4 KiB that it has
// not announced yet.
const slack = 64 << 10

// newInflow returns c for http2, which opens the connection's window before anything else.
func newInflow(c *tls.Conn) *inflow {
	f := &inflow{Conn: c, held: connWindow, out: frameScanner{at: frameHeader, left: len(http2.ClientPreface)}}
	f.change.L = &f.mu
	return f
}

// bound sets how much may be held. With open, more than that is not the origin's fault.
func (f *inflow) bound(asked int64, open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.open = asked, open
	f.change.Broadcast()
}

func (f *inflow) add(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held += n
	f.change.Broadcast()
}

// Read implements net.Conn. http2 calls it only when it has dealt with every whole frame that it got so far, so all that
// is held waits for a reader.
func (f *inflow) Read(p []byte) (int, error) {
	if err := f.admit(); err != nil {
		return 0, err
	}
	n, err := f.Conn.Read(p)
	data := int64(0)
	f.in.scan(p[:n], func(h *frameHead) {
		if h.kind() == http2.FrameData {
			data += int64(h.length())
		}
	})
	if data > 0 {
		f.add(data)
	}
	return n, err
}

// admit waits until there is room for another frame.
func (f *inflow) admit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held <= f.asked+slack {
		return nil
	}
	// Waiting until half of the slack is free saves switches between goroutines.
	for f.open && f.held > f.asked+slack/2 && !f.closed {
		f.change.Wait()
	}
	switch {
	case f.closed:
		return net.ErrClosed
	case f.held > f.asked+slack:
		return errFlood
	}
	return nil
}

// Write implements net.Conn.
func (f *inflow) Write(p []byte) (int, error) {
	f.out.scan(p, func(h *frameHead) {
		if h.kind() == http2.FrameWindowUpdate && h.stream() == 0 {
			f.add(-int64(h.increment()))
		}
	})
	return f.Conn.Write(p)
}

// Close implements net.Conn. It sends no alert, which could block.
func (f *inflow) Close() error {
	f.mu.Lock()
	f.closed = true
	f.change.Broadcast()
	f.mu.Unlock()
	return f.NetConn().Close()
}

const frameHeader = 9

// frameHead is the header of a frame (RFC 9113 section 4.1) and the first bytes of its payload, if it has any.
type frameHead [frameHeader + 4]byte

func (h *frameHead) length() int           { return int(binary.BigEndian.Uint32(h[:]) >> 8) }
func (h *frameHead) kind() http2.FrameType { return http2.FrameType(h[3]) }
func (h *frameHead) stream() uint32        { return binary.BigEndian.Uint32(h[5:]) &^ (1 << 31) }
func (h *frameHead) increment() uint32     { return binary.BigEndian.Uint32(h[frameHeader:]) &^ (1 << 31) }

// frameScanner finds the frames in one direction of a connection.
type frameScanner struct {
	head frameHead
	at   int // bytes of head that have come
	left int // bytes of the payload that have not come yet
}

// scan takes the next bytes and calls ended at the end of each frame.
func (s *frameScanner) scan(p []byte, ended func(*frameHead)) {
	for len(p) > 0 {
		if s.at < frameHeader {
			n := copy(s.head[s.at:frameHeader], p)
			s.at, p = s.at+n, p[n:]
			if s.at < frameHeader {
				return
			}
			s.left = s.head.length()
		} else {
			n := min(s.left, len(p))
			s.at += copy(s.head[s.at:], p[:n])
			s.left, p = s.left-n, p[n:]
		}
		if s.left == 0 {
			ended(&s.head)
			s.at = 0
		}
	}
}
