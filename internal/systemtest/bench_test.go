package systemtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"runtime"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// BenchmarkDownload downloads over two links on loopback without a rate limit. allocs/MB includes the allocations of the origin and
// of the client. It must not grow with the object.
func BenchmarkDownload(b *testing.B) {
	for _, mb := range []int64{8, 64, 256} {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			s := origintest.New(b, origintest.Object{Size: mb * 1e6})
			r := newRig(b, s, settings(), "wifi", "lte")
			c := client(b, r.url)
			download := func() {
				resp, err := c.Do(request(context.Background(), s.URL(), nil))
				if err != nil {
					b.Fatal(err)
				}
				defer resp.Body.Close()
				if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != mb*1e6 {
					b.Fatalf("%d bytes, %v", n, err)
				}
			}
			download()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.SetBytes(mb * 1e6)
			for b.Loop() {
				download()
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N)/float64(mb), "allocs/MB")
		})
	}
}

// BenchmarkTunnel downloads through one and eight concurrent tunnels on loopback, and for comparison through a relay that only
// splices.
func BenchmarkTunnel(b *testing.B) {
	const size = 256 << 20
	origin := accept(b, func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			_, _ = io.CopyN(c, endless{}, size)
		}
	})
	dial := func(ctx context.Context, _ link.Link, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", origin)
	}
	_, u, stop, err := daemon.StartWith(context.Background(), settings(), slog.New(slog.DiscardHandler), transport.Config{
		Source: discover.WithPaths(discover.NewStatic(named("wifi", "lte")...), link.DialFunc(dial).Path),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	proxy, err := url.Parse(u)
	if err != nil {
		b.Fatal(err)
	}
	relay := accept(b, func(client net.Conn) {
		o, err := net.Dial("tcp", origin)
		if err != nil {
			return
		}
		defer o.Close()
		go func() { _, _ = io.Copy(o, client) }()
		_, _ = io.Copy(client, o)
	})
	for _, way := range []struct {
		name string
		open func() (net.Conn, error)
	}{
		{"relay", func() (net.Conn, error) { return net.Dial("tcp", relay) }},
		{"tributary", func() (net.Conn, error) {
			c, err := net.Dial("tcp", proxy.Host)
			if err != nil {
				return nil, err
			}
			const ok = "HTTP/1.1 200 Connection established\r\n\r\n"
			fmt.Fprint(c, "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
			_, err = io.ReadFull(c, make([]byte, len(ok)))
			return c, err
		}},
	} {
		for _, n := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				b.SetBytes(int64(n) * size)
				for b.Loop() {
					var all sync.WaitGroup
					for range n {
						all.Go(func() {
							c, err := way.open()
							if err != nil {
								b.Error(err)
								return
							}
							defer c.Close()
							_, _ = c.Write([]byte{1})
							buf := make([]byte, 256<<10)
							if got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.LimitReader(c, size)}, buf); got != size {
								b.Errorf("%d bytes, %v", got, err)
							}
						})
					}
					all.Wait()
				}
			})
		}
	}
}

// endless is a reader without an end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) { return len(p), nil }

// accept serves connections on loopback and returns the address.
func accept(b *testing.B, serve func(net.Conn)) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { serve(c); c.Close() }()
		}
	}()
	return l.Addr().String()
}
