package mptcp

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/proxy"
)

// Proxy is a proxy server that connects to any address: by CONNECT (RFC 9110 section 9.3.6) over TLS, or by SOCKS5 (RFC 1928).
// Its methods are safe for concurrent use.
type Proxy struct {
	addr, scheme string
	user         *url.Userinfo
	tls          *tls.Config
	connect      Connect

	mu   sync.Mutex
	open map[*conn]struct{}
}

// Connect opens a connection to an address, "host:port", with a socket that uses MPTCP.
type Connect func(ctx context.Context, addr string) (net.Conn, error)

// maxReply is the longest response to CONNECT that is read, in bytes.
const maxReply = 16 << 10

// ports are the default ports of proxies, by URL scheme.
var ports = map[string]string{"https": "443", "socks5": "1080"}

// ParseURL parses the URL of a proxy: https://USER:PASSWORD@HOST:PORT, or socks5://. Its errors do not repeat the URL, which
// may contain a password.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New(`want a URL like "https://USER:PASSWORD@proxy.example.com:443"`)
	case ports[u.Scheme] == "":
		return nil, fmt.Errorf(`%q is not supported: write "https://HOST:PORT" or "socks5://HOST:PORT"`, u.Scheme+"://")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("remove everything after the port")
	case u.Scheme == "socks5" && u.User != nil:
		return nil, errors.New("SOCKS5 would send the password without encryption: use https://, or a proxy that authenticates this machine by its address")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), ports[u.Scheme])
	}
	u.Path = ""
	return u, nil
}

// New returns a Proxy. connect opens the connections to it. trusted verifies its certificate, nil = as the system does.
func New(u *url.URL, connect Connect, trusted *tls.Config) *Proxy {
	cfg := &tls.Config{}
	if trusted != nil {
		cfg = trusted.Clone()
	}
	cfg.ServerName, cfg.NextProtos = u.Hostname(), []string{"http/1.1"}
	return &Proxy{addr: u.Host, scheme: u.Scheme, user: u.User, tls: cfg, connect: connect, open: map[*conn]struct{}{}}
}

// Addr returns the proxy's address, "host:port".
func (p *Proxy) Addr() string { return p.addr }

// Dial makes the proxy connect to an address, "host:port".
func (p *Proxy) Dial(ctx context.Context, to string) (net.Conn, error) {
	raw, err := p.connect(ctx, p.addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the proxy %s: %w", p.addr, err)
	}
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	c, err := p.handshake(ctx, raw, to)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("proxy %s: %w", p.addr, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = struct{}{}
	return c, nil
}

// handshake makes the proxy at the other end of raw connect to an address.
func (p *Proxy) handshake(ctx context.Context, raw net.Conn, to string) (*conn, error) {
	c := &conn{Conn: raw, raw: raw, of: p}
	if p.scheme == "socks5" {
		d, err := proxy.SOCKS5("tcp", p.addr, nil, given{raw})
		if err != nil {
			return nil, err
		}
		_, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", to)
		return c, err
	}
	t := tls.Client(raw, p.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	head := "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n"
	if p.user != nil {
		password, _ := p.user.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(t, head+"\r\n"); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: t, N: maxReply}
	reader := bufio.NewReader(limited)
	reply, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil:
		return nil, fmt.Errorf("response to CONNECT: %w", err)
	case reply.StatusCode == http.StatusProxyAuthRequired:
		return nil, errors.New("it rejects the user and password, or requires them: set url in [relay] of the configuration")
	case reply.StatusCode/100 != 2:
		return nil, fmt.Errorf("it refuses to connect: %s", reply.Status)
	}
	limited.N = 1 << 62
	c.Conn, c.ahead = t, reader
	return c, nil
}

// given is a dialer that is already connected.
type given struct{ net.Conn }

func (g given) Dial(string, string) (net.Conn, error) { return keepOpen(g), nil }

// keepOpen leaves closing to Proxy.Dial, whose error would otherwise be that of a closed connection.
type keepOpen struct{ net.Conn }

func (keepOpen) Close() error { return nil }

// conn is a connection through the proxy.
type conn struct {
	net.Conn
	raw   net.Conn      // the connection below TLS
	ahead *bufio.Reader // may hold bytes that arrived with the proxy's response; nil = it does not
	of    *Proxy
}

func (c *conn) Read(b []byte) (int, error) {
	if c.ahead == nil {
		return c.Conn.Read(b)
	}
	if c.ahead.Buffered() == 0 {
		c.ahead = nil // one goroutine reads a connection
		return c.Conn.Read(b)
	}
	return c.ahead.Read(b)
}

// CloseWrite tells the other end that no more bytes follow.
func (c *conn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Status describes what a Proxy's connections use.
type Status struct {
	Tunnels  int // open tunnels
	Subflows int // of all tunnels: 1 for each link that carries one
	Plain    int // tunnels without MPTCP, because the other end or the path does not support it: they use one link
}

// Status returns the state of all connections.
func (p *Proxy) Status() Status {
	p.mu.Lock()
	all := make([]net.Conn, 0, len(p.open))
	for c := range p.open {
		all = append(all, c.raw)
	}
	p.mu.Unlock()
	s := Status{Tunnels: len(all)}
	for _, c := range all {
		n, multipath := subflows(c)
		s.Subflows += n
		if !multipath {
			s.Plain++
		}
	}
	return s
}
