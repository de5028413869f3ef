package inbound

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
)

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// piecewise is a connection from which at most size bytes are read at a time.
type piecewise struct {
	net.Conn
	r    io.Reader
	size int
}

func (p piecewise) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }

// serve starts a Server and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(&http.Server{Handler: h})
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return l.Addr().String()
}

// dial connects and sends some bytes.
func dial(t *testing.T, addr, send string) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if _, err := io.WriteString(nc, send); err != nil {
		t.Fatal(err)
	}
	return nc.(*net.TCPConn)
}

func TestTargets(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI, " ") })
	t.Run("R239 requests one behind the other", func(t *testing.T) {
		nc := dial(t, addr, "GET /100% HTTP/1.1\r\nHost: h\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: h\r\n\r\nGET /100%25 HTTP/1.1\r\nHost: h\r\n\r\n"+
			"GET http://h/%a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		b, err := io.ReadAll(nc)
		if err != nil || strings.Count(string(b), "200 OK") != 4 {
			t.Fatalf("%q, %v", b, err)
		}
		for _, want := range []string{"/100% ", "/100%25 ", "http://h/%a "} {
			if !strings.Contains(string(b), "\n"+want) {
				t.Errorf("no %q in %q", want, b)
			}
		}
	})
}

func TestClientsThatSendNoMore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	const ask = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
	arrived := make(chan context.Context)
	answer := make(chan struct{})
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		arrived <- r.Context()
		select {
		case <-answer:
			_, _ = w.Write(b)
		case <-r.Context().Done():
		}
	})
	t.Run("R241 they get the answer, and the connection ends", func(t *testing.T) {
		nc := dial(t, addr, ask)
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		ctx := <-arrived
		select {
		case <-ctx.Done():
			t.Fatal("the request was given up")
		case <-time.After(50 * time.Millisecond): // a mistake would show within microseconds
		}
		answer <- struct{}{}
		if b, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(b), "\r\n\r\nabc") {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("R241 a client that leaves ends its request", func(t *testing.T) {
		nc := dial(t, addr, ask)
		ctx := <-arrived
		nc.Close()
		<-ctx.Done()
	})
	t.Run("R241 a client that leaves after it sent no more ends its request", func(t *testing.T) {
		nc := dial(t, addr, ask)
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		ctx := <-arrived
		nc.Close()
		<-ctx.Done()
	})
	t.Run("R241 a reset ends the request", func(t *testing.T) {
		nc := dial(t, addr, ask)
		if err := errors.Join(nc.CloseWrite(), nc.SetLinger(0)); err != nil {
			t.Fatal(err)
		}
		ctx := <-arrived
		nc.Close()
		<-ctx.Done()
	})
	t.Run("R241 where the client believes to be connected counts", func(t *testing.T) {
		other := dial(t, addr, "")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan net.Conn, 1)
		s := NewServer(&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })})
		s.Ends = func(nc net.Conn) (local, remote netip.AddrPort) {
			asked <- nc
			return other.RemoteAddr().(*net.TCPAddr).AddrPort(), other.LocalAddr().(*net.TCPAddr).AddrPort()
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-done })
		nc := dial(t, l.Addr().String(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, ok := (<-asked).(*net.TCPConn); !ok {
			t.Error("it was asked about another connection")
		}
		other.Close()
		if _, err := io.ReadAll(nc); err != nil { // it ends when the request does
			t.Error(err)
		}
	})
	t.Run("R241 content that ends early is an error", func(t *testing.T) {
		nc := dial(t, addr, ask[:len(ask)-1])
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(nc); err != nil {
			t.Error(err)
		}
	})
}

// TestSecured: a connection that TLS is spoken over serves requests like another.
func TestSecured(t *testing.T) {
	https := httptest.NewTLSServer(nil)
	https.Close()
	s := NewServer(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })})
	s.TLS = func(nc net.Conn, early []byte) (net.Conn, error) {
		return tls.Server(&behind{nc, io.MultiReader(bytes.NewReader(early), nc)}, https.TLS), nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	defer func() { s.Close(); <-done }()
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	for _, path := range []string{"/a", "/b"} {
		resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, "https://"+l.Addr().String()+path, nil))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != path || err != nil {
			t.Errorf("%q, %v, want %q", b, err, path)
		}
	}
}

// behind is a connection with another source of bytes.
type behind struct {
	net.Conn
	from io.Reader
}

func (b *behind) Read(p []byte) (int, error) { return b.from.Read(p) }

// TestTLS: a client that begins TLS is reported, and only on its first byte.
func TestTLS(t *testing.T) {
	for first, want := range map[string]int{"\x16\x03\x01\x02\x00": 1, "GET / HTTP/1.1\r\nHost: h\r\n\r\n\x16\x03\x01": 0} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(&http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
		seen := make(chan net.Conn, 2)
		s.TLS = func(nc net.Conn, _ []byte) (net.Conn, error) { seen <- nc; return nil, nil }
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		nc := dial(t, l.Addr().String(), first)
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(nc); err != nil {
			t.Error(err)
		}
		s.Close()
		<-done
		if len(seen) != want {
			t.Errorf("%q: reported %d times", first, len(seen))
		}
	}
}
