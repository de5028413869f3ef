// Package inbound stands between clients that speak HTTP/1 and net/http, for requests that net/http would refuse or
// give up although they can be served: those with a percent sign that begins no escape, and those of clients that send
// no more.
//
// Reasons: docs/decisions/half-closed-clients.md.
package inbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
)

// Server is an http.Server whose connections are Conns. The hooks and the handler of the http.Server see what they
// would see without it, except that a target has the bytes that the client sent.
type Server struct {
	*http.Server
	// Ends returns the two ends of a connection as its client sees them, if they are not those of the connection
	// itself, as for a redirected one; otherwise zero values. nil = they always are.
	Ends func(nc net.Conn) (local, remote netip.AddrPort)
	TLS  TLS // if not nil, called when a client begins TLS on a connection that expects HTTP
}

// TLS returns a connection above nc that speaks TLS; early was read from nc. Without a connection and an error, the
// client gets the answer of net/http, in plain text.
type TLS func(nc net.Conn, early []byte) (net.Conn, error)

type connKey struct{}

// NewServer returns a Server for s, whose fields must not change afterwards.
func NewServer(s *http.Server) *Server {
	about, state, handler := s.ConnContext, s.ConnState, s.Handler
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if c, ok := nc.(*Conn); ok {
			ctx, nc = context.WithValue(ctx, connKey{}, c), c.Conn
		}
		if about != nil {
			ctx = about(ctx, nc)
		}
		return ctx
	}
	s.ConnState = func(nc net.Conn, to http.ConnState) {
		if c, ok := nc.(*Conn); ok {
			switch to { // in the others, net/http may be reading
			case http.StateActive:
				c.serving, c.original = true, c.head.original()
			case http.StateIdle:
				c.serving = false
			}
			nc = c.Conn
		}
		if state != nil {
			state(nc, to)
		}
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*Conn); ok && c.original != nil {
			r.RequestURI = c.original(r.RequestURI)
		}
		handler.ServeHTTP(w, r)
	})
	return &Server{Server: s}
}

// Serve serves the connections that l accepts, see [http.Server.Serve].
func (s *Server) Serve(l net.Listener) error { return s.Server.Serve(listener{l, s.Ends, s.TLS}) }

// listener makes Conns.
type listener struct {
	net.Listener
	ends func(net.Conn) (local, remote netip.AddrPort)
	tls  TLS
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t, ok := nc.(*tls.Conn); ok && t.ConnectionState().NegotiatedProtocol == "h2" {
		return nc, nil // net/http needs the connection itself to serve HTTP/2
	}
	return &Conn{Conn: nc, ends: l.ends, tls: l.tls}, nil
}

// Unwrap returns the connection below a Conn that was hijacked, and the bytes read from it that its reader has not seen
// yet.
func Unwrap(nc net.Conn) (below net.Conn, unread []byte) {
	if c, ok := nc.(*Conn); ok {
		return c.NetConn(), append(c.out, c.in...)
	}
	return nc, nil
}
