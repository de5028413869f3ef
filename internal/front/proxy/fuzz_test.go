package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzR037_R189_R202_Requests: whatever a client sends, there is no panic and no request without an end, and each request that
// goes out is one request, framed in one way, for the host that it is sent to.
func FuzzR037_R189_R202_Requests(f *testing.F) {
	const get = "GET http://o.test/a?b HTTP/1.1\r\nHost: o.test\r\n"
	const post = "POST http://o.test/ HTTP/1.1\r\nHost: o.test\r\n"
	for _, s := range []string{
		get + "\r\n" + get + "\r\n",
		get + "TE: trailers\r\n\r\n",
		get + "Range: bytes=0-5\r\nIf-Range: \"a\"\r\nAuthorization: Basic eDp5\r\n\r\n",
		get + "Connection: host, range, x-a\r\nX-A: 1\r\nRange: bytes=0-\r\n\r\n",
		get + "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
		get + "X-A: a\r\n b\r\n\tc\r\nX-B:\x80\xff\r\n\r\n",
		get + "X-A: a\rX-B: b\nX-C: c\n\n",
		get + "Proxy-Connection: keep-alive\r\nProxy-Authorization: x\r\nKeep-Alive: 1\r\nTE: gzip\r\n\r\n",
		post + "Content-Length: 5\r\n\r\nhello" + get + "\r\n",
		post + "Content-Length: 5\r\nConnection: content-length\r\n\r\nhello" + get + "\r\n",
		post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get + "\r\n",
		post + "Transfer-Encoding: chunked\r\nConnection: transfer-encoding\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n5;x=y\r\nhello\r\n0\r\nX-A: 1\r\nContent-Length: 3\r\n\r\n",
		post + "Transfer-Encoding: xchunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		post + "Content-Length: +5\r\n\r\nhello",
		post + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
		post + "Expect: x\r\nContent-Length: 5\r\n\r\n",
		"POST http://o.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET http://o.test:80//x|y?%zz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET http://u:p@o.test/#f HTTP/1.1\r\nHost: o.test\r\n\r\n",
		"GET http://[2001:db8::1]:8080 HTTP/1.0\r\n\r\n",
		"GET https://o.test HTTP/1.1\r\nHost: \r\n\r\n",
		"OPTIONS http://o.test HTTP/1.1\r\nHost: x\r\nMax-Forwards: 1\r\n\r\n",
		"TRACE http://o.test/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nCookie: a\r\n\r\n",
		"HEAD http://o.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT o.test:443 HTTP/1.1\r\nHost: o.test\r\n\r\nearly",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /index.html HTTP/1.1\r\nHost: o.test\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		synctest.Test(t, func(t *testing.T) { // virtual time: waiting for clients that send half a request takes no time
			o := newTap(t)
			p := New(Config{Transport: o, Session: session(o), Log: slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.LevelError}))})
			s := NewServer(p)
			l := &pipes{make(chan net.Conn), make(chan struct{})}
			var all sync.WaitGroup
			all.Go(func() { _ = s.Serve(l) })
			near, far := net.Pipe()
			l.conns <- far
			all.Go(func() { _, _ = near.Write(sent) })
			said, err := io.ReadAll(near) // ends when the proxy closes the connection, after 120 s without a request at the latest
			if err != nil {
				t.Errorf("end of the connection: %v", err)
			}
			if len(said) > 0 && !bytes.HasPrefix(said, []byte("HTTP/1.")) {
				t.Errorf("the client sees %.100q", said)
			}
			near.Close()
			_ = s.Close()
			o.transport.CloseIdleConnections()
			all.Wait()
			o.origins.Wait()
		})
	})
}

// tap is a Transport that checks outgoing requests.
type tap struct {
	t         *testing.T
	transport http.Transport
	origins   sync.WaitGroup
}

func newTap(t *testing.T) *tap {
	o := &tap{t: t}
	o.transport.DisableCompression = true
	o.transport.ExpectContinueTimeout = 2 * time.Second
	dial := func(_ context.Context, _, addr string) (net.Conn, error) {
		near, far := net.Pipe()
		o.origins.Go(func() { o.origin(far, addr) })
		return near, nil
	}
	o.transport.DialContext, o.transport.DialTLSContext = dial, dial
	return o
}

// Write receives lines logged at error level: a handler has panicked.
func (o *tap) Write(b []byte) (int, error) {
	o.t.Errorf("%s", b)
	return len(b), nil
}

func (o *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header["Upgrade"] != nil {
		return o.transport.RoundTrip(r)
	}
	path := r.URL.RequestURI()
	if rest, ok := strings.CutPrefix(r.URL.Opaque, "//"+r.Host); ok {
		path = rest
	}
	if r.Host == "" || strings.ContainsFunc(r.Host, unsafe) || strings.ContainsFunc(r.URL.Host, unsafe) || !strings.HasPrefix(path, "/") ||
		strings.ContainsFunc(path, unsafe) {
		o.t.Errorf("asks for %q of %q at %q", path, r.Host, r.URL.Host)
	}
	for name, values := range r.Header {
		o.field(name, values...)
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection":
			if name != "Connection" || len(values) != 1 || values[0] != "TE" {
				o.t.Errorf("asks with %s: %q", name, values)
			}
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}

func (o *tap) DialTunnel(_ context.Context, addr string) (net.Conn, string, error) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" || strings.ContainsFunc(addr, unsafe) {
		o.t.Errorf("dials %q for a tunnel", addr)
	}
	return nil, "", errors.New("no tunnels here")
}

// unsafe reports whether a byte could end a word of a request line.
func unsafe(r rune) bool { return r <= ' ' || r == 0x7f }

var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// field checks outgoing field lines, whichever path they take.
func (o *tap) field(name string, values ...string) {
	hop := slices.Contains(hopByHop[:], http.CanonicalHeaderKey(name))
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Te", "Upgrade", "Transfer-Encoding", "Content-Length", "Trailer": // rebuilt: see origin
		hop = false
	}
	if !token.MatchString(name) || hop {
		o.t.Errorf("sends a field %q", name)
	}
	for _, v := range values {
		if strings.ContainsAny(v, "\r\n\x00") {
			o.t.Errorf("sends %s: %q", name, v)
		}
	}
}

// origin receives one request and answers it.
func (o *tap) origin(c net.Conn, addr string) {
	defer c.Close()
	var raw bytes.Buffer
	br := bufio.NewReader(io.TeeReader(c, &raw))
	r, err := http.ReadRequest(br)
	if head, _, ok := bytes.Cut(raw.Bytes(), []byte("\r\n\r\n")); ok {
		o.head(string(head), addr)
	} else if err == nil {
		o.t.Errorf("sends %q", &raw)
	}
	if err != nil {
		if raw.Len() > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			o.t.Errorf("sends something that is not a request: %v: %q", err, &raw)
		}
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil { // the client's content broke off
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	if rest, _ := io.ReadAll(br); len(rest) > 0 {
		o.t.Errorf("sends %q behind its request", rest)
	}
}

// head reads the head of a request, byte by byte.
func (o *tap) head(head, addr string) {
	lines := strings.Split(head, "\r\n")
	words := strings.Split(lines[0], " ")
	if len(words) != 3 || words[1] == "" || words[2] != "HTTP/1.1" || !token.MatchString(words[0]) || strings.ContainsFunc(words[1], unsafe) {
		o.t.Errorf("sends the request line %q", lines[0])
	}
	var hosts, framings int
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			o.t.Errorf("sends the line %q", line)
		}
		value = strings.TrimPrefix(value, " ")
		o.field(name, value)
		switch strings.ToLower(name) {
		case "host":
			hosts++
			if host, _, _ := net.SplitHostPort(addr); !strings.Contains(value, host) || strings.ContainsFunc(value, unsafe) {
				o.t.Errorf("sends Host %q to %s", value, addr)
			}
		case "content-length":
			framings++
		case "transfer-encoding":
			if framings++; value != "chunked" {
				o.t.Errorf("sends Transfer-Encoding %q", value)
			}
		}
	}
	if hosts != 1 || framings > 1 {
		o.t.Errorf("sends %d Host fields and %d framings: %q", hosts, framings, head)
	}
}
