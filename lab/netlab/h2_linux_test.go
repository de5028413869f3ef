package netlab

//lint:file-ignore SA1019 net/http's own ClientConn cannot be given a connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// BenchmarkH2 fetches an object in ranges of 1 MiB, two requests at a time, from nginx over TLS without an emulated link:
// over a connection of the product, and over one of net/http with the same windows. cpu-ms/MB is the processor time of
// this process.
func BenchmarkH2(b *testing.B) {
	const size, part = 64 << 20, 1 << 20
	l := start(b, Scenario{Links: []LinkSpec{Symmetric("wifi", 100*Mbit, 4*time.Millisecond)}})
	object(b, serve(b, l), size)
	cert, err := l.Certificate()
	if err != nil {
		b.Fatal(err)
	}
	pem, err := os.ReadFile(cert.CA)
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	host, path := OriginAddr.String(), "/"+Bytes(size).String()
	dial := func(ctx context.Context) (conn net.Conn, err error) {
		err = l.server.enter(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, "443"))
			return err
		})
		return conn, err
	}
	b.Run("product", func(b *testing.B) {
		over := link.DialFunc(func(ctx context.Context, _ link.Link, _, _ string) (net.Conn, error) { return dial(ctx) })
		pool := origin.New(roots)
		defer pool.Close()
		to := engine.Target{Scheme: "https", Host: host, Addr: net.JoinHostPort(host, "443"), Path: path}
		c, err := pool.Open(b.Context(), over.Over(link.Link{Name: "lo"})[0], to)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		var want *engine.Identity
		measureH2(b, size, part, func(start, end int64) func() (io.Reader, error) {
			a := engine.RangeRequest{Target: to, Range: segment.Range{Start: start, End: end}, Want: want}
			if want != nil {
				a.IfRange = want.Validator
			}
			err := c.Send(a)
			return func() (io.Reader, error) {
				if err != nil {
					return nil, err
				}
				response, err := c.Next()
				if err != nil {
					return nil, err
				}
				want = &response.ID // the next request is for this version, so it may leave before its turn
				return response.Body, nil
			}
		})
	})
	b.Run("net-http", func(b *testing.B) {
		t, err := http2.ConfigureTransports(&http.Transport{DisableCompression: true, HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: 16 << 20, MaxReceiveBufferPerStream: 4 << 20, MaxReadFrameSize: 64 << 10,
		}})
		if err != nil {
			b.Fatal(err)
		}
		raw, err := dial(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		secure := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: host, NextProtos: []string{http2.NextProtoTLS}})
		defer secure.Close()
		c, err := t.NewClientConn(secure)
		if err != nil {
			b.Fatal(err)
		}
		type answer struct {
			*http.Response
			error
		}
		measureH2(b, size, part, func(start, end int64) func() (io.Reader, error) {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "https://"+host+path, nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", start, end-1))
			answers := make(chan answer, 1)
			go func() {
				response, err := c.RoundTrip(r)
				answers <- answer{response, err}
			}()
			return func() (io.Reader, error) {
				a := <-answers
				if a.error != nil {
					return nil, a.error
				}
				return a.Body, nil
			}
		})
	})
}

// measureH2 fetches an object repeatedly. ask sends a request and returns a function that waits for the body of its
// answer.
func measureH2(b *testing.B, size, part int64, ask func(start, end int64) func() (io.Reader, error)) {
	b.Helper()
	buf := make([]byte, 64<<10)
	read := func(next func() (io.Reader, error)) (n int64) {
		body, err := next()
		if err != nil {
			b.Fatal(err)
		}
		for {
			k, err := body.Read(buf)
			if n += int64(k); err == io.EOF {
				return n
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	read(ask(0, 1)) // the origin's SETTINGS arrive
	b.SetBytes(size)
	used := processorTime(b)
	for b.Loop() {
		var got int64
		first := ask(0, part)
		for at := part; at < size; at += part {
			second := ask(at, min(size, at+part))
			got += read(first)
			first = second
		}
		if got += read(first); got != size {
			b.Fatalf("%d bytes, want %d", got, size)
		}
	}
	spent := processorTime(b) - used
	b.ReportMetric(float64(spent.Microseconds())/1e3/(float64(b.N)*float64(size)/1e6), "cpu-ms/MB")
}

// processorTime returns how much processor time this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
