package inbound

import (
	"io"
	"net"
	"net/netip"
	"sync/atomic"
)

// Conn is a connection of a client that speaks HTTP/1. net/http reads it in one goroutine at a time.
type Conn struct {
	net.Conn
	head    head
	out, in []byte // bytes to deliver, and those that arrived behind them
	serving bool   // a request is being served
	ends    func(net.Conn) (local, remote netip.AddrPort)
	tls     TLS                      // nil after the first byte
	secured atomic.Pointer[net.Conn] // its result: what is read and written in place of Conn; nil = none
	// original, if not nil, turns the target of the present request into that of the client.
	original func(target string) string
}

// TLSHandshake is the type of the record with which a TLS client begins (RFC 8446 section 5.1). No HTTP request begins
// with it.
const TLSHandshake = 22

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn {
	if s := c.secured.Load(); s != nil {
		return *s
	}
	return c.Conn
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (int, error) { return c.NetConn().Write(p) }

// Close implements io.Closer.
func (c *Conn) Close() error { return c.NetConn().Close() }

// CloseWrite ends writing. net/http does so before it closes a connection whose client may still send.
func (c *Conn) CloseWrite() error {
	if w, ok := c.NetConn().(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// Read implements io.Reader. It returns bytes of one request only, as long as it knows where requests end.
func (c *Conn) Read(p []byte) (int, error) {
	for len(p) > 0 && len(c.out) == 0 {
		if len(c.in) > 0 {
			c.out, c.in = c.head.take(c.in)
			continue
		}
		n, err := c.NetConn().Read(p)
		if begin := c.tls; n > 0 && begin != nil {
			if c.tls = nil; p[0] == TLSHandshake {
				s, err := begin(c.Conn, append([]byte(nil), p[:n]...))
				if err != nil {
					return 0, err
				}
				if s != nil {
					c.secured.Store(&s)
					continue
				}
			}
		}
		switch {
		case n > 0:
			out, in := c.head.take(p[:n])
			if len(in) == 0 && len(out) == n && &out[0] == &p[0] { // unchanged
				return n, nil
			}
			c.out, c.in = append([]byte(nil), out...), append([]byte(nil), in...)
		case err == io.EOF && c.serving && len(p) == 1:
			// A client that sends no more may wait for its answer (RFC 9112 section 9.6). net/http watches for clients
			// that leave by reading one byte, and takes the end of what they send for that.
			return 0, c.left()
		default:
			return n, err
		}
	}
	n := copy(p, c.out)
	if c.out = c.out[n:]; len(c.out) == 0 {
		c.out = nil
	}
	return n, nil
}
