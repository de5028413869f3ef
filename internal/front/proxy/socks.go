package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/things-go/go-socks5/statute"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/cutoff"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// SOCKS serves tunnels to clients that speak SOCKS5 (RFC 1928): CONNECT only, without authentication, for users who may
// use the proxy. It refuses what the CONNECT of HTTP refuses.
type SOCKS struct {
	p   *Proxy
	ctx context.Context // of dials
	end context.CancelFunc

	mu sync.Mutex
	ln net.Listener // closed by Shutdown
}

// NewSOCKS returns the server for p.
func NewSOCKS(p *Proxy) *SOCKS {
	s := &SOCKS{p: p}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until Shutdown or a failure, closes the listener and returns when the accepted connections
// have ended. The error is http.ErrServerClosed after Shutdown.
func (s *SOCKS) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln = ln
	s.mu.Unlock()
	if s.ctx.Err() != nil {
		ln.Close()
	}
	var conns sync.WaitGroup
	defer conns.Wait()
	return s.p.acceptAll(s.ctx, ln, func(c *net.TCPConn) {
		of := s.p.enter(c, netip.AddrPort{})
		if of.place == admission.Dropped {
			s.p.leave(c)
			cutoff.Reset(c)
			return
		}
		conns.Go(func() { s.serve(c, of) })
	})
}

// Shutdown accepts no new connections, and ends those that have no tunnel yet. Tunnels are left to p.Shutdown. Its
// error is nil.
func (s *SOCKS) Shutdown(context.Context) error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		_ = s.ln.Close()
	}
	return nil
}

// serve turns a connection into a tunnel.
func (s *SOCKS) serve(c *net.TCPConn, of *client) {
	_ = c.SetDeadline(time.Now().Add(headerTime))
	hangUp := context.AfterFunc(s.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	addr, f := s.greet(c, of)
	s.p.admission.Spoke(c)
	var tun *tunnel
	if addr != "" && f == nil && s.p.sniffs() {
		s.unproven(c, addr, of, hangUp)
		return
	}
	if addr != "" && f == nil {
		tun, f = s.dial(addr, of)
	}
	s.p.leave(c) // a tunnel counts as such
	hangUp()
	if tun != nil {
		defer s.p.tunnels.remove(tun)
	}
	_ = c.SetDeadline(time.Now().Add(headerTime))
	switch {
	case f != nil:
		s.p.Log.Debug("cannot open a tunnel for a SOCKS client", "reason", f.text)
		_, _ = c.Write(socksReply(replyOf(f)))
		_ = c.Close()
	case tun == nil:
		_ = c.Close()
	default:
		if _, err := c.Write(socksReply(statute.RepSuccess)); err != nil {
			_ = tun.origin.Close()
			_ = c.Close()
			return
		}
		_ = c.SetDeadline(time.Time{})
		setKeepAlive(c)
		s.p.runTunnel(tun, c, nil)
	}
}

// unproven serves a tunnel that is dialed after its first bytes. hangUp stops the watch for Shutdown.
func (s *SOCKS) unproven(c *net.TCPConn, addr string, of *client, hangUp func() bool) {
	_, err := c.Write(socksReply(statute.RepSuccess))
	s.p.leave(c) // it enters again, or counts as a tunnel
	hangUp()
	if err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	setKeepAlive(c)
	s.p.serveSniffed(s.ctx, c, nil, addr, of, transport.Flow{User: of.name(), Program: s.p.spreadProgram(of)})
}

// greet reads the client's request and returns the destination ("host:port"), or why the client gets no tunnel. It
// returns neither for a client that does not speak SOCKS5, like a web page that makes its browser connect here, or that
// offers no known method.
func (s *SOCKS) greet(c io.ReadWriter, of *client) (addr string, f *failure) {
	version := make([]byte, 1) // read alone: other protocols may send less than a request, and wait
	_, err := io.ReadFull(c, version)
	if err != nil || version[0] != statute.VersionSocks5 {
		s.p.Log.Debug("closed a connection that does not speak SOCKS5", "error", err)
		return "", nil
	}
	methods, err := statute.ParseMethodRequest(io.MultiReader(bytes.NewReader(version), c))
	if err != nil {
		return "", nil
	}
	method := statute.MethodNoAuth
	if !slices.Contains(methods.Methods, method) {
		method = statute.MethodNoAcceptable
	}
	if _, err := c.Write([]byte{statute.VersionSocks5, method}); err != nil || method != statute.MethodNoAuth {
		return "", nil
	}
	q, err := statute.ParseRequest(c)
	switch {
	case errors.Is(err, statute.ErrUnrecognizedAddrType):
		return "", badRequest("The destination has an unknown SOCKS5 address type.")
	case err != nil:
		return "", nil
	case q.Command != statute.CommandConnect:
		return "", &failure{status: http.StatusNotImplemented, text: "Only the SOCKS5 command CONNECT is supported."}
	}
	if f := of.refusal(); f != nil {
		return "", f
	}
	host, port, f := splitAuthority(q.DstAddr.String())
	if f != nil {
		return "", f
	}
	addr = net.JoinHostPort(host, port)
	return addr, s.p.mayTunnel(of, addr)
}

// dial starts a tunnel.
func (s *SOCKS) dial(addr string, of *client) (*tunnel, *failure) {
	flow := transport.Flow{User: of.name(), Program: s.p.spreadProgram(of)}
	origin, l, err := s.p.Transport.DialTunnel(s.p.paying(flowing(s.ctx, flow), of), addr)
	if err != nil {
		return nil, classify(err)
	}
	setKeepAlive(origin)
	tun, f := s.p.tunnels.add(origin, l, of)
	if f != nil {
		_ = origin.Close()
		return nil, f
	}
	tun.again = s.p.again(flowing(s.ctx, flow), addr)
	return tun, nil
}

// replyOf returns the code of RFC 1928 section 6 for a failure.
func replyOf(f *failure) byte {
	switch {
	case f.status == http.StatusForbidden:
		return statute.RepRuleFailure
	case f.status == http.StatusNotImplemented:
		return statute.RepCommandNotSupported
	case f.status == http.StatusBadRequest:
		return statute.RepAddrTypeNotSupported
	case f.cause == fault.PortClosed.Row().ProxyStatus:
		return statute.RepConnectionRefused
	case f.status == http.StatusBadGateway, f.status == http.StatusGatewayTimeout:
		return statute.RepHostUnreachable
	}
	return statute.RepServerFailure
}

// socksReply returns a reply. BND.ADDR is 0.0.0.0: clients do not use it.
func socksReply(code byte) []byte {
	return statute.Reply{
		Version: statute.VersionSocks5, Response: code, BndAddr: statute.AddrSpec{
			IP: net.IPv4zero, AddrType: statute.ATYPIPv4,
		},
	}.Bytes()
}
