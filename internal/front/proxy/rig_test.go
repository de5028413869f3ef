package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// testTime bounds every wait of the rig; a working test never comes near it.
const testTime = 20 * time.Second

// scripted is an origin that answers byte for byte according to its script.
type scripted struct {
	t    *testing.T
	addr string
	l    net.Listener
	wg   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // accepted
}

// serve starts an origin that runs script for each connection, then closes it.
func serve(t *testing.T, script func(c *conn)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &scripted{t: t, addr: l.Addr().String(), l: l}
	o.wg.Add(1)
	go func() {
		defer o.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns = append(o.conns, c)
			o.mu.Unlock()
			o.wg.Add(1)
			go func() {
				defer o.wg.Done()
				defer c.Close()
				script(wrap(t, c))
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		o.mu.Lock()
		for _, c := range o.conns {
			c.Close()
		}
		o.mu.Unlock()
		o.wg.Wait()
	})
	return o
}

// answer starts an origin that answers each request with the same bytes and keeps the connection; heads gets the
// header sections that it saw.
func answer(t *testing.T, raw string) (o *scripted, heads <-chan string) {
	t.Helper()
	ch := make(chan string, 64)
	return serve(t, func(c *conn) {
		for {
			head, err := c.head()
			if err != nil {
				return
			}
			ch <- head
			c.send(raw)
		}
	}), ch
}

// dials returns how many connections the origin has accepted.
func (o *scripted) dials() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns)
}

func (o *scripted) url(path string) string { return "http://" + o.addr + path }

// conn is one end of a connection, byte-exact.
type conn struct {
	t *testing.T
	*net.TCPConn
	br *bufio.Reader
}

func wrap(t *testing.T, c net.Conn) *conn {
	_ = c.SetDeadline(time.Now().Add(testTime))
	return &conn{t, c.(*net.TCPConn), bufio.NewReader(c)}
}

// send writes s; a later read detects a peer that is gone.
func (c *conn) send(s string) { _, _ = io.WriteString(c.TCPConn, s) }

// head reads up to and including the next empty line.
func (c *conn) head() (string, error) {
	var b strings.Builder
	for {
		line, err := c.br.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), err
		}
		if line == "\r\n" {
			return b.String(), nil
		}
	}
}

// want reads exactly len(s) bytes and compares them.
func (c *conn) want(s string) {
	c.t.Helper()
	got := make([]byte, len(s))
	n, err := io.ReadFull(c.br, got)
	if err != nil || string(got) != s {
		c.t.Fatalf("read %q, %v; want %q", got[:n], err, s)
	}
}

// rest reads to the end of the connection.
func (c *conn) rest() (string, error) {
	b, err := io.ReadAll(c.br)
	return string(b), err
}

// ended reads to the end of the connection, which the peer must close.
func (c *conn) ended() string {
	c.t.Helper()
	rest, err := c.rest()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("the connection stays open after %q", rest)
	}
	return rest
}

// wantHead reads a head and fails if it does not begin with a status line of that code.
func (c *conn) wantHead(status string) string {
	c.t.Helper()
	head, err := c.head()
	if err != nil || len(head) < 13 || head[:7] != "HTTP/1." || head[8:13] != " "+status+" " {
		c.t.Fatalf("head %q, %v; want status %s", head, err, status)
	}
	return head
}

// forwarder is a Transport over package net, without links.
type forwarder struct {
	transport http.Transport
	relayed   bool  // DialTunnel names no link
	dialErr   error // error of DialTunnel
	getErr    error // error of RoundTrip for a GET
	dialed    chan string
	flows     chan transport.Flow // of tunnels

	mu       sync.Mutex
	requests []*http.Request
}

func newForwarder() *forwarder {
	f := &forwarder{dialed: make(chan string, 64), flows: make(chan transport.Flow, 64)}
	f.transport.DisableCompression = true
	f.transport.ExpectContinueTimeout = testTime
	return f
}

// flowOf returns the flow of a context, Unmetered if its requests are.
func flowOf(ctx context.Context) transport.Flow {
	o := transport.OptionsOf(ctx)
	o.Flow.Unmetered = o.Request().Unmetered
	return o.Flow
}

func (f *forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	if f.getErr != nil && r.Method == http.MethodGet {
		return nil, f.getErr
	}
	transport.OptionsOf(r.Context()).Usage.Add("lo", 0, 0)
	return f.transport.RoundTrip(r)
}

// Close makes the forwarder a Session, too.
func (f *forwarder) Close() {}

func (f *forwarder) DialTunnel(ctx context.Context, addr string) (net.Conn, string, error) {
	f.dialed <- addr
	select {
	case f.flows <- flowOf(ctx):
	default: // nobody asks
	}
	if f.dialErr != nil {
		return nil, "", f.dialErr
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if f.relayed {
		return c, "", err
	}
	return c, "lo", err
}

// last returns the last request, nil if there was none.
func (f *forwarder) last() *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		return nil
	}
	return f.requests[len(f.requests)-1]
}

// rig is a proxy on loopback.
type rig struct {
	t     *testing.T
	addr  string
	proxy *proxy.Proxy
	f     *forwarder
	log   *logBuffer
}

// logBuffer keeps lines logged at info level and above.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a proxy until the test ends.
func start(t *testing.T, options ...func(*proxy.Config)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := netip.MustParseAddrPort(l.Addr().String())
	g := &rig{t: t, addr: l.Addr().String(), f: newForwarder(), log: &logBuffer{}}
	cfg := proxy.Config{
		Transport: g.f, Session: func() proxy.Session { return g.f },
		Self: func(a netip.AddrPort) bool { return a == own },
		Log:  slog.New(slog.NewTextHandler(g.log, nil)),
	}
	for _, o := range options {
		o(&cfg)
	}
	g.proxy = proxy.New(cfg)
	s := proxy.NewServer(g.proxy)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = g.proxy.Shutdown(ctx) // ctx has ended: resets the rest
		_ = s.Close()
		<-done
		g.f.transport.CloseIdleConnections()
		if strings.Contains(g.log.String(), "panicked") {
			t.Errorf("a handler panicked: %s", g.log)
		}
	})
	return g
}

// dial connects a raw client.
func (g *rig) dial() *conn {
	g.t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	return wrap(g.t, c)
}

// send connects a raw client and writes raw.
func (g *rig) send(raw string) *conn {
	g.t.Helper()
	c := g.dial()
	c.send(raw)
	return c
}

// get sends a GET that is eligible, or with fields that make it pass through, and closes after the answer.
func (g *rig) get(url string, fields ...string) *conn {
	g.t.Helper()
	return g.send("GET " + url + " HTTP/1.1\r\nHost: ignored\r\n" +
		strings.Join(append(fields, "Connection: close", "", ""), "\r\n"))
}

// fieldsOf returns the value lines of a field in a raw head.
func fieldsOf(head, name string) []string {
	var values []string
	for line := range strings.SplitSeq(head, "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}
