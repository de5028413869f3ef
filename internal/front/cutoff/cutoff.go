// Package cutoff lets clients see that a response broke off.
//
// The end of a response to an HTTP/1.1 client is its last chunk or its last announced byte, and HTTP/2 has a frame for
// it. The content for an HTTP/1.0 client often ends where the connection ends, so the connection must not end in good
// order before that.
//
// Reasons: docs/decisions/broken-off.md.
package cutoff

import (
	"context"
	"io"
	"net"
	"net/http"
)

// Reset closes c so that its peer sees a reset, if c is a TCP connection or TLS over one; TLS is then not closed in
// good order.
func Reset(c io.Closer) {
	c = below(c)
	linger(c, 0)
	_ = c.Close()
}

// below returns the connection that carries c.
func below(c io.Closer) io.Closer {
	for {
		over, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = over.NetConn()
	}
}

// linger says how c closes: 0 = with a reset, -1 = after it has sent everything.
func linger(c io.Closer, seconds int) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(seconds) // fails only if c is closed already
	}
}

type connKey struct{}

// Show makes a server reset connections on which a response to an HTTP/1.0 client ends early: its handler panics, the
// server is closed, or the process ends. Everything but the handler and ConnContext may be set later.
func Show(s *http.Server) {
	handler, values := s.Handler, s.ConnContext
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if values != nil {
			ctx = values(ctx, nc)
		}
		return context.WithValue(ctx, connKey{}, nc)
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, ok := r.Context().Value(connKey{}).(net.Conn)
		if !ok || r.ProtoAtLeast(1, 1) || r.Method == http.MethodConnect { // a tunnel ends with its connection
			handler.ServeHTTP(w, r)
			return
		}
		linger(below(nc), 0)
		whole := false
		defer func() {
			if whole {
				linger(below(nc), -1)
			} else {
				Reset(nc)
			}
		}()
		handler.ServeHTTP(w, r)
		whole = true
	})
}
