package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// sniffs reports whether the first bytes of a tunnel decide over which links it may go: some networks must not see
// credentials.
func (p *Proxy) sniffs() bool { return p.Untrusted != nil && p.Untrusted() }

// firstBytes classifies a connection whose client got its success, and has sent early.
func firstBytes(c net.Conn, early []byte) verdict {
	if tcp, ok := tcpOf(c); ok {
		return sniff(tcp, early, speakTime)
	}
	return judge(early)
}

// serveSniffed serves a connection to addr ("host:port") whose client got its success, and has sent early: requests in
// the clear like those on redirected connections, all else as a tunnel. Networks read along unless it is TLS. ctx is
// that of the dial.
func (p *Proxy) serveSniffed(ctx context.Context, c net.Conn, early []byte, addr string, of *client,
	flow transport.Flow,
) {
	v := firstBytes(c, early)
	if v == isHTTP {
		if len(early) > 0 {
			c = &begun{Conn: c, rest: io.MultiReader(bytes.NewReader(early), c)}
		}
		p.serveClear(c, addr)
		return
	}
	ctx = transport.With(ctx, func(o *transport.Options) { o.Flow, o.Links.Exposes = flow, v != isTLS })
	p.tunnelAfterAll(p.paying(ctx, of), of, c, early, addr)
}

// serveClear serves the requests on a connection to addr.
func (p *Proxy) serveClear(conn net.Conn, addr string) {
	c := p.enter(conn, netip.AddrPort{})
	c.clear = addr
	if c.place == admission.Dropped {
		_ = conn.Close()
	} else if !p.opened.requests.give(conn) {
		p.leave(conn)
	}
}

// begun is a connection whose first bytes were read.
type begun struct {
	net.Conn
	rest io.Reader
}

// NetConn returns the connection below.
func (b *begun) NetConn() net.Conn { return b.Conn }

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) { return b.rest.Read(p) }

// CloseWrite ends writing.
func (b *begun) CloseWrite() error {
	if c, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return b.Close()
}
