package origin_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// secured serves one TLS connection with serve; the pool trusts its certificate for example.com.
func secured(t *testing.T, serve func(*tls.Conn, net.Conn)) (*pool, engine.Target) {
	t.Helper()
	h := httptest.NewTLSServer(nil) // for its certificate
	h.Close()
	roots := x509.NewCertPool()
	roots.AddCert(h.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		serve(tls.Server(nc, &tls.Config{Certificates: h.TLS.Certificates, NextProtos: []string{"http/1.1"}}), nc)
	}()
	p := newPool(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}, roots)
	t.Cleanup(func() { p.Close(); l.Close(); <-done })
	return p, engine.Target{Scheme: "https", Host: "example.com:8443", Addr: "example.com:8443", Path: "/"}
}

// TestBehind: a read over TLS returns one record, however much waits.
func TestBehind(t *testing.T) {
	const size = 256 << 10
	written := make(chan struct{})
	p, target := secured(t, func(c *tls.Conn, _ net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 262144\r\n\r\n")
		c.Write(make([]byte, size))
		close(written)
		_, _ = c.Read(make([]byte, 1)) // the client's end
	})
	c, err := p.Open(t.Context(), links[0], target)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(engine.RangeRequest{Target: target}); err != nil {
		t.Fatal(err)
	}
	response, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	<-written
	b := make([]byte, 32<<10)
	n, err := response.Body.Read(b)
	if err != nil || n > 16<<10 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if !c.Behind() {
		t.Error("not behind, although a quarter of a megabyte waits")
	}
	if n, err := io.CopyN(io.Discard, response.Body, size-int64(n)-1000); err != nil {
		t.Fatal(n, err)
	}
	if c.Behind() {
		t.Error("behind, although nothing waits")
	}
	if n := testing.AllocsPerRun(100, func() { c.Behind() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHTTPS(t *testing.T) {
	alpn := make(chan string, 1)
	p, target := secured(t, func(c *tls.Conn, _ net.Conn) {
		br := bufio.NewReader(c)
		for range 2 {
			if _, err := http.ReadRequest(br); err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}
		alpn <- c.ConnectionState().NegotiatedProtocol
	})
	for i := range 2 {
		c, err := p.Open(t.Context(), links[0], target)
		if err != nil {
			t.Fatal(err)
		}
		if c.Info().Reused != (i == 1) {
			t.Errorf("connection %d: %+v", i, c.Info())
		}
		if err := c.Send(engine.RangeRequest{Target: target}); err != nil {
			t.Fatal(err)
		}
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(response.Body); string(b) != "hello" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		c.Release()
	}
	if got := <-alpn; got != "http/1.1" {
		t.Errorf("ALPN %q", got)
	}
}

func TestR171_CertificateIsVerified(t *testing.T) {
	p, target := secured(t, func(c *tls.Conn, _ net.Conn) { c.Handshake() })
	target.Host = "other.example"
	_, err := p.Open(t.Context(), links[0], target)
	var name x509.HostnameError
	if !errors.As(err, &name) || outcome(t, err) != fault.Unreachable {
		t.Errorf("got %v", err)
	}
}

// RFC 9112 section 9.8: a body without length is complete over TLS only if the closure alert arrived.
func TestR050_Truncation(t *testing.T) {
	for _, cut := range []bool{false, true} {
		p, target := secured(t, func(c *tls.Conn, raw net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhello")
			if cut {
				raw.(*net.TCPConn).CloseWrite()
			} else {
				c.CloseWrite()
			}
			io.Copy(io.Discard, raw)
		})
		c, err := p.Open(t.Context(), links[0], target)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(engine.RangeRequest{Target: target}); err != nil {
			t.Fatal(err)
		}
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(response.Body)
		if string(b) != "hello" || (err != nil) != cut {
			t.Errorf("R50 cut %v: %q, %v", cut, b, err)
		}
		if cut && outcome(t, err) != fault.Short {
			t.Errorf("R50: %v", err)
		}
		c.Close()
	}
}
