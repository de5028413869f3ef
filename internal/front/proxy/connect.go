package proxy

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/front/inbound"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// connect serves CONNECT (RFC 9110 section 9.3.6).
func (x *exchange) connect() {
	if x.upload != nil || len(x.r.TransferEncoding) > 0 {
		x.refuse(badRequest("A CONNECT request must not have content. Send the tunnel's data after the response."))
		return
	}
	host, port, f := splitAuthority(x.r.RequestURI)
	if f == nil && port == "" {
		f = badRequest("CONNECT needs a host and a port, like example.com:443.")
	}
	if f != nil {
		x.refuse(f)
		return
	}
	addr := net.JoinHostPort(host, port)
	if f := x.p.mayTunnel(x.client, addr); f != nil {
		x.refuse(f)
		return
	}
	flow := transport.Flow{User: x.client.name(), Program: x.r.UserAgent()}
	if x.p.Intercept != nil && x.p.Intercept.Wants(x.client.program(x.p), host, addr) {
		x.open(host, addr, flow)
		return
	}
	if x.p.sniffs() {
		x.unproven(addr, flow)
		return
	}
	conn, l, err := x.p.Transport.DialTunnel(x.p.paying(flowing(x.r.Context(), flow), x.client), addr)
	if err != nil {
		x.fail(err)
		return
	}
	setKeepAlive(conn)
	// The head must have neither Content-Length nor Transfer-Encoding, which net/http does not promise.
	x.tunnel([]byte(established), conn, l, x.p.again(flowing(x.r.Context(), flow), addr))
}

// unproven serves a tunnel that is dialed after its first bytes.
func (x *exchange) unproven(addr string, flow transport.Flow) {
	client, early, err := x.hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if _, err := io.WriteString(client, established); err != nil {
		_ = client.Close()
		return
	}
	x.p.serveSniffed(x.r.Context(), client, early, addr, x.client, flow)
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// mailPort reports whether addr ("host:port") accepts mail for delivery: a client with a tunnel there, or with a
// request that passes for the commands of a mail client, could send mail in the user's name (R139).
func mailPort(addr string) bool {
	_, port, _ := net.SplitHostPort(addr)
	return port == "25" || port == "465" || port == "587"
}

func noMail() *failure {
	return forbidden("Mail ports are not allowed. Exempt mail from the proxy.")
}

// mayTunnel returns why a client gets no tunnel to addr ("host:port"), nil if it does.
func (p *Proxy) mayTunnel(of *client, addr string) *failure {
	_, port, _ := net.SplitHostPort(addr)
	switch {
	case !p.tunnelPort(of, port):
		return forbidden("Tunnels to this port are not allowed from other machines. " +
			"Allowed ports are listed in connect_ports in the configuration of the proxy.")
	case mailPort(addr):
		return noMail()
	case p.own(addr):
		return failureOf(fault.Denied)
	}
	return p.tunnels.room(of.user)
}

// tunnelPort reports whether a client may have a tunnel to a port: a client that connected over loopback to any port,
// others to those that are listed (R139).
func (p *Proxy) tunnelPort(of *client, port string) bool {
	if !of.local.IsValid() || of.local.Addr().Unmap().IsLoopback() {
		return true
	}
	return slices.ContainsFunc(p.TunnelPorts, func(n uint16) bool { return strconv.Itoa(int(n)) == port })
}

// tunnel sends head to the client, then copies both ways until the tunnel has ended. It takes over origin. again is
// that of the tunnel, nil if it stays on its link.
func (x *exchange) tunnel(head []byte, origin io.ReadWriteCloser, link string, again redial) {
	t, f := x.p.tunnels.add(origin, link, x.client)
	if f != nil {
		_ = origin.Close()
		x.refuse(f)
		return
	}
	t.again = again
	defer x.p.tunnels.remove(t)
	client, early, err := x.hijack()
	if err != nil {
		_ = origin.Close()
		panic(http.ErrAbortHandler)
	}
	if _, err := client.Write(head); err != nil {
		_ = origin.Close()
		_ = client.Close()
		return
	}
	x.p.runTunnel(t, client, early)
}

// hijack takes the client's connection from the server. early are the bytes that the client sent right after its
// request (R71).
func (x *exchange) hijack() (client net.Conn, early []byte, err error) {
	client, buffered, err := x.rc.Hijack()
	if err != nil {
		return nil, nil, err
	}
	early = make([]byte, buffered.Reader.Buffered())
	_, _ = io.ReadFull(buffered, early) // from memory
	client, unread := inbound.Unwrap(client)
	setKeepAlive(client)
	return client, append(early, unread...), nil
}

// runTunnel copies until a tunnel has ended.
func (p *Proxy) runTunnel(t *tunnel, client io.ReadWriteCloser, early []byte) {
	if p.costs(t) { // this may have changed since it was dialed
		t.reset()
	}
	var answer []byte
	c, isConn := client.(net.Conn)
	if origin, ok := t.origin.(net.Conn); ok && isConn && t.again != nil && t.link != "" {
		began := t.link
		early, answer = nil, t.begin(p.tunnels, c, origin, early)
		if t.link != began && p.Overtaken != nil {
			p.Overtaken(began)
		}
	}
	ended := t.run(client, early, answer, &p.buffers)
	p.carried(t.link, t.bytes.Load())
	p.Log.Debug("tunnel ended", "link", t.link, "bytes", t.bytes.Load(), "reason", ended)
}

func (p *Proxy) carried(link string, bytes int64) {
	if p.Carried != nil && link != "" && bytes > 0 {
		p.Carried(link, bytes)
	}
}

// keepAlive is the idle time after which peers that vanished silently are looked for; a shorter one would drain a
// phone's battery (R144).
const keepAlive = 60 * time.Second

func setKeepAlive(c net.Conn) {
	if tcp, ok := c.(interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: keepAlive, Interval: keepAlive / 4, Count: 4,
		})
	}
}
