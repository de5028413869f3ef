package direct_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// placing returns a pass-through client that spreads over links in virtual time.
func (c *course) placing(links ...link.Link) *direct.PassThrough {
	p := c.passThrough(links...)
	p.Placer = direct.NewPlacer(spread.Policy{Mode: spread.Auto})
	return p
}

func newCourse(t *testing.T, wifi, eth time.Duration) *course {
	return &course{t: t, begin: time.Now(), after: map[string]time.Duration{"wifi": wifi, "eth": eth}, open: map[string]int{}, fail: map[string]error{}}
}

var wifiEth = []link.Link{{Name: "wifi"}, {Name: "eth"}}

// as returns a context with the flow of a client.
func as(t *testing.T, user, program string) context.Context {
	return engine.With(t.Context(), func(o *engine.Options) { o.Flow = spread.Flow{User: user, Program: program} })
}

// tunnels opens n tunnels and returns the links that carry them.
func tunnels(t *testing.T, p *direct.PassThrough, ctx context.Context, addr string, n int) (over []string) {
	t.Helper()
	for range n {
		d, err := p.DialTunnel(ctx, addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		over = append(over, d.Link.Name)
	}
	return over
}

// TestPlacedTunnels: the tunnels of a program take turns; those of a browser stay together, also with those of its session.
func TestPlacedTunnels(t *testing.T) {
	for _, tt := range []struct {
		name, user, program, addr, want string
	}{
		{"a program", "1", "aria2/1.36.0", "cdn.example.com:443", "wifi eth wifi eth"},
		{"a program without a name", "1", "", "cdn.example.com:443", "wifi eth wifi eth"},
		{"a browser", "1", "Mozilla/5.0", "cdn.example.com:443", "wifi wifi wifi wifi"},
		{"an address", "1", "aria2", "192.0.2.1:443", "wifi eth wifi eth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCourse(t, time.Millisecond, time.Millisecond)
				p := c.placing(wifiEth...)
				if got := strings.Join(tunnels(t, p, as(t, tt.user, tt.program), tt.addr, 4), " "); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
	t.Run("a session follows the race, by its registrable domain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCourse(t, 0, time.Millisecond) // wifi does not answer
			p := c.placing(wifiEth...)
			over := tunnels(t, p, as(t, "1", "Mozilla/5.0"), "www.shop.co.uk:443", 1)
			c.after["wifi"] = time.Millisecond
			time.Sleep(time.Minute) // virtual; wifi is first again
			over = append(over, tunnels(t, p, as(t, "1", "Mozilla/5.0"), "IMG.shop.co.uk.:443", 1)...)
			over = append(over, tunnels(t, p, as(t, "1", "Mozilla/5.0"), "other.co.uk:443", 1)...)
			over = append(over, tunnels(t, p, as(t, "2", "Mozilla/5.0"), "www.shop.co.uk:443", 1)...)
			if got := strings.Join(over, " "); got != "eth eth wifi wifi" {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("a session waits for a lost SYN", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCourse(t, time.Millisecond, time.Millisecond)
			p := c.placing(wifiEth...)
			over := tunnels(t, p, as(t, "1", "Mozilla/5.0"), "www.shop.test:443", 1)
			c.after["wifi"] = time.Second + time.Millisecond
			over = append(over, tunnels(t, p, as(t, "1", "Mozilla/5.0"), "www.shop.test:443", 1)...)
			over = append(over, tunnels(t, p, as(t, "1", "Mozilla/5.0"), "other.test:443", 1)...)
			c.after["wifi"] = 0 // wifi no longer answers
			over = append(over, tunnels(t, p, as(t, "1", "Mozilla/5.0"), "www.shop.test:443", 1)...)
			if got := strings.Join(over, " "); got != "wifi wifi eth eth" {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("races stay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCourse(t, time.Millisecond, -time.Millisecond) // eth fails
			c.fail["eth"] = errors.New("refused")
			p := c.placing(wifiEth...)
			if got := strings.Join(tunnels(t, p, as(t, "1", "aria2"), "o.test:443", 2), " "); got != "wifi wifi" {
				t.Errorf("got %s", got)
			}
			if loads, _ := p.Placer.Loads(); loads["wifi"].Open != 2 || loads["eth"].Open != 0 {
				t.Errorf("%+v", loads)
			}
			c.after["wifi"], c.fail["wifi"] = -time.Millisecond, io.EOF
			if _, err := p.DialTunnel(as(t, "1", "aria2"), "o.test:443"); err == nil {
				t.Error("no link connects")
			}
			if loads, _ := p.Placer.Loads(); loads["wifi"].Open != 2 {
				t.Errorf("a tunnel that never was counts: %+v", loads)
			}
		})
	})
	t.Run("closed tunnels do not count", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newCourse(t, time.Millisecond, time.Millisecond).placing(wifiEth...)
			for range 3 {
				d, err := p.DialTunnel(as(t, "1", "aria2"), "o.test:443")
				if err != nil || d.Link.Name != "wifi" {
					t.Fatal(d.Link.Name, err)
				}
				d.Close()
				d.Close()
			}
			if loads, _ := p.Placer.Loads(); loads["wifi"].Open != 0 {
				t.Errorf("%+v", loads)
			}
		})
	})
}

// TestPlacedRequests: requests that run at the same time take turns; content of both directions counts.
func TestPlacedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCourse(t, time.Millisecond, time.Millisecond)
		p := c.placing(wifiEth...)
		defer p.Close()
		put := func(agent string, want string) *http.Response {
			t.Helper()
			r, _ := http.NewRequestWithContext(as(t, "1", ""), "PUT", "http://bucket.test/part", strings.NewReader(strings.Repeat("x", 1000)))
			r.Header.Set("User-Agent", agent)
			resp, l, err := p.Do(r)
			if err != nil || l.Name != want {
				t.Errorf("%s: over %s, %v, want %s", agent, l.Name, err, want)
			}
			return resp
		}
		first := put("aws-sdk/1", "wifi")
		second := put("aws-sdk/1", "eth")
		third := put("Mozilla/5.0", "wifi")
		if loads, _ := p.Placer.Loads(); loads["wifi"].Open != 2 || loads["eth"].Open != 1 {
			t.Errorf("%+v", loads)
		}
		for _, resp := range []*http.Response{first, second, third} {
			if b, err := io.ReadAll(resp.Body); len(b) != 1000 || err != nil {
				t.Error(len(b), err)
			}
			resp.Body.Close()
		}
		put("aws-sdk/1", "wifi").Body.Close() // alone again
		if loads, _ := p.Placer.Loads(); loads["wifi"].Open+loads["eth"].Open != 0 || loads["eth"].Bytes != 2000 || loads["wifi"].Bytes < 5000 {
			t.Errorf("at the end %+v", loads)
		}
	})
}

// TestPlacedTCP: the kernel counts what a tunnel carries, and can still splice it.
func TestPlacedTCP(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	over := link.DialFunc(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, ln.Addr().String())
	}).Over(wifiEth...)
	p := direct.NewPassThrough(func() []link.Link { return over }, nil, time.Minute)
	p.Placer = direct.NewPlacer(spread.Policy{Mode: spread.Auto})
	d, err := p.DialTunnel(t.Context(), "o.test:443")
	if err != nil {
		t.Fatal(err)
	}
	nc := d.Conn
	if tcp, ok := nc.(interface{ TCP() *net.TCPConn }); !ok || tcp.TCP() == nil {
		t.Error("it cannot be spliced")
	}
	const n = 100_000
	go func() { _, _ = nc.Write(make([]byte, n)) }()
	if _, err := io.ReadFull(nc, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Error(err)
	}
	nc.Close()
	if loads, _ := p.Placer.Loads(); loads["wifi"].Bytes < 2*n || loads["wifi"].Bytes > 2*n+10 || loads["wifi"].Open != 0 {
		t.Errorf("%+v, want %d bytes", loads, 2*n)
	}
}

// TestPlacedUpload: content that waits in the kernel is not carried yet.
func TestPlacedUpload(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO")
	}
	const most = 256 << 10
	ln, err := (&net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(err, c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }))
	}}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // nobody accepts from it
	over := link.DialFunc(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, ln.Addr().String())
		if err == nil {
			err = nc.(*net.TCPConn).SetWriteBuffer(8 * most)
		}
		return nc, err
	}).Over(wifiEth...)
	p := direct.NewPassThrough(func() []link.Link { return over }, nil, time.Minute)
	p.Placer = direct.NewPlacer(spread.Policy{Mode: spread.Auto})
	ctx, cancel := context.WithCancel(t.Context())
	content, to := io.Pipe()
	r, _ := http.NewRequestWithContext(ctx, "PUT", "http://bucket.test/part", content)
	ended := make(chan struct{})
	go func() { defer close(ended); _, _, _ = p.Do(r) }()
	if _, err := to.Write(make([]byte, 4*most)); err != nil {
		t.Error(err)
	}
	loads, _ := p.Placer.Loads()
	for ; loads["wifi"].Bytes == 0 && !t.Failed(); loads, _ = p.Placer.Loads() { // until it is measured
		time.Sleep(10 * time.Millisecond)
	}
	if loads["wifi"].Open != 1 || loads["wifi"].Bytes > most {
		t.Errorf("%+v, want at most %d bytes", loads["wifi"], most)
	}
	cancel()
	to.Close()
	<-ended
}

// TestPlacerRuns: a running connection is noticed within a second, and idle connections are not checked often.
func TestPlacerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCourse(t, time.Millisecond, time.Millisecond)
		p := c.placing(wifiEth...)
		told := make(chan [2]int, 10)
		p.Placer.Busy = func(all, spread int) { told <- [2]int{all, spread} }
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); p.Placer.Run(ctx) }()
		from, to := io.Pipe()
		r, _ := http.NewRequestWithContext(as(t, "1", "rclone"), "PUT", "http://bucket.test/part", from)
		answered := make(chan error, 1)
		go func() {
			resp, _, err := p.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			answered <- err
		}()
		for range 30 {
			_, _ = to.Write(make([]byte, 64<<10))
			time.Sleep(100 * time.Millisecond)
		}
		if now := <-told; now != [2]int{1, 1} || len(told) > 0 {
			t.Errorf("while it runs: %v, and %d more", now, len(told))
		}
		time.Sleep(2 * time.Second)
		if now := <-told; now != [2]int{0, 0} || len(told) > 0 {
			t.Errorf("while it pauses: %v, and %d more", now, len(told))
		}
		to.Close()
		if err := <-answered; err != nil {
			t.Error(err)
		}
		stop()
		<-ran
		p.Close()
	})
}

// TestGreeted: a connection that the pool keeps is no longer a tunnel, whether or not its origin could be greeted.
func TestGreeted(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, tt := range []struct {
		host string // the certificate names example.com
		ok   bool
	}{{"example.com", true}, {"o.test", false}} {
		over := link.DialFunc(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		}).Over(wifiEth...)
		p := direct.NewPassThrough(func() []link.Link { return over }, roots, time.Minute)
		p.Placer = direct.NewPlacer(spread.Policy{Mode: spread.Auto})
		pool := origin.New(roots)
		defer pool.Close()
		var kept []string
		pool.Idle = func(name, addr string) { kept = append(kept, name+" "+addr) }
		d, err := p.DialTunnel(as(t, "1", "curl"), tt.host+":443")
		if err != nil {
			t.Fatal(err)
		}
		if loads, _ := p.Placer.Loads(); loads["wifi"].Open != 1 {
			t.Errorf("it does not count: %+v", loads)
		}
		d.Uncount()
		_, asked, err := pool.Greet(t.Context(), d, engine.Target{Scheme: "https", Host: tt.host, Addr: tt.host + ":443"})
		if (err == nil) != tt.ok || asked {
			t.Errorf("%s: %v, asked %v", tt.host, err, asked)
		}
		if loads, _ := p.Placer.Loads(); loads["wifi"].Open != 0 {
			t.Errorf("%s: it counts still: %+v", tt.host, loads)
		}
		if got := len(kept) == 1; got != tt.ok {
			t.Errorf("%s: kept %q", tt.host, kept)
		}
	}
}
