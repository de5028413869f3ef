package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// over runs do and returns how many bytes each link carried meanwhile, both directions.
func (r *rig) over(do func()) map[string]int64 {
	r.Helper()
	before := map[string]int64{}
	for _, l := range r.lab.LinkNames() {
		_, before[l] = r.carried(l)
	}
	do()
	r.settle()
	got := map[string]int64{}
	for _, l := range r.lab.LinkNames() {
		_, n := r.carried(l)
		got[l] = n - before[l]
	}
	return got
}

// TestSpread runs programs that open several https connections at the same time, and some that do not.
func TestSpread(t *testing.T) {
	r := start(t, quick())
	o := r.object(20_000_000)
	secure := r.nginx.SecureURL(o)
	t.Run("aria2c", func(t *testing.T) {
		need(t, "aria2c", "aria2")
		r := r.on(t)
		aria2 := func(args ...string) func() {
			return func() {
				file := r.file()
				began := time.Now()
				r.ok(r.client("aria2c", append([]string{
					"--no-conf", "--quiet", "--async-dns=false", "--dir=/", "--out=" + file, "--check-certificate=false",
					"--min-split-size=1M", "--split=8", "--max-connection-per-server=8", secure,
				}, args...)...))
				t.Logf("%s: %v", args, time.Since(began))
				r.isObject(r.read(file), o)
			}
		}
		r.over(aria2("--multiple-interface=" + strings.Join(r.lab.LinkNames(), ","))) // for comparison
		for range 2 {
			for link, n := range r.over(aria2("--all-proxy=" + proxyURL)) {
				if n < int64(o.Size)/10 {
					t.Errorf("%s carried %d bytes of %d", link, n, o.Size)
				}
			}
		}
	})
	t.Run("curl", func(t *testing.T) {
		r := r.on(t)
		got := r.over(func() { r.isObject(r.ok(r.curl("-k", "--fail", secure)).body, o) })
		if got["wifi"] < int64(o.Size) || got["lte"] > int64(o.Size)/part {
			t.Errorf("a single connection: %v", got)
		}
	})
	t.Run("a login that is bound to an address", func(t *testing.T) {
		r := r.on(t)
		var mu sync.Mutex
		homes, loads, logouts := map[string]string{}, 0, 0
		origin := r.serveHTTP(8101, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			host, _, _ := net.SplitHostPort(q.RemoteAddr)
			session := q.Header.Get("X-Session")
			mu.Lock()
			defer mu.Unlock()
			loads++
			if home, ok := homes[session]; !ok {
				homes[session] = host
			} else if home != host {
				logouts++
			}
			_, _ = io.WriteString(w, strings.Repeat("page ", 10_000))
		}))
		browse := func(session, agent string) {
			// A tunnel for plain http, too, which the proxy does not inspect.
			client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				return r.tunnel(ctx, addr, agent)
			}}}
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					for range 25 {
						q, _ := http.NewRequestWithContext(r.ctx, http.MethodGet, origin, nil)
						q.Header.Set("X-Session", session)
						q.Close = true
						resp, err := client.Do(q)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				})
			}
			all.Wait()
		}
		browse("browser", "Mozilla/5.0 (X11; Linux x86_64)")
		if loads != 150 || logouts > 0 {
			t.Errorf("%d of %d requests came from another address", logouts, loads)
		}
		if browse("downloader", "hf/1.0"); logouts == 0 {
			t.Error("a downloader is not spread: the test shows nothing")
		}
	})
	t.Run("parallel PUTs", func(t *testing.T) {
		r := r.on(t)
		const size = 2 << 20
		var mu sync.Mutex
		var received int64
		origin := r.serveHTTP(8102, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			n, _ := io.Copy(io.Discard, q.Body)
			mu.Lock()
			defer mu.Unlock()
			received += n
		}))
		part := r.file()
		if err := os.WriteFile(part, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][]string{nil, {"--proxytunnel"}} {
			received = 0
			got := r.over(func() {
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() { r.ok(r.curl(append(way, "-T", part, fmt.Sprintf("%s/%d", origin, i))...)) })
				}
				all.Wait()
			})
			if received != 8*size || got["wifi"] < 2*size || got["lte"] < 2*size {
				t.Errorf("%q: %d bytes received, the links carried %v", way, received, got)
			}
		}
	})
}

// tunnel opens a tunnel for a program.
func (r *rig) tunnel(ctx context.Context, addr, agent string) (net.Conn, error) {
	c, err := r.lab.DialContext(ctx, "tcp", netlab.ProxyAddr)
	if err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintf(c, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: %[2]s\r\n\r\n", addr, agent); err == nil {
		const ok = "HTTP/1.1 200 Connection established\r\n\r\n"
		b := make([]byte, len(ok))
		if _, err = io.ReadFull(c, b); err == nil && string(b) == ok {
			return c, nil
		}
	}
	c.Close()
	return nil, fmt.Errorf("no tunnel: %w", err)
}

// using is a connection of a program through the proxy.
type using struct {
	net.Conn
	kind string
	use  func(net.Conn) error
	from string // the address that the origin sees
}

// TestSpreadLinkDies removes a link under running tunnels and requests: they end at once, so that programs connect again.
func TestSpreadLinkDies(t *testing.T) {
	for _, what := range []string{netlab.EventDown, netlab.EventBlackhole} {
		t.Run("R145 "+what, func(t *testing.T) {
			r := start(t, quick())
			from := make(chan string, 1)
			came := func(addr string) {
				host, _, _ := net.SplitHostPort(addr)
				from <- host
			}
			serve := func(port int, do func(net.Conn)) string {
				r.listen(port, func(c net.Conn) { came(c.RemoteAddr().String()); do(c) })
				return fmt.Sprintf("%s:%d", netlab.OriginAddr, port)
			}
			origin := r.serveHTTP(8103, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if came(q.RemoteAddr); q.Method == http.MethodPut {
					_, _ = io.Copy(io.Discard, q.Body)
					return
				}
				_, _ = io.Copy(w, endless{})
			}))
			tunnel := func(addr string) func() (net.Conn, error) {
				return func() (net.Conn, error) { return r.tunnel(r.ctx, addr, "aria2/1.36.0") }
			}
			request := func(head string) func() (net.Conn, error) {
				return func() (net.Conn, error) {
					c, err := r.lab.DialContext(r.ctx, "tcp", netlab.ProxyAddr)
					if err == nil {
						_, err = fmt.Fprintf(c, head+"\r\n\r\n", origin)
					}
					return c, err
				}
			}
			down := func(c net.Conn) error { return moves(c.Read) }
			up := func(c net.Conn) error { return moves(c.Write) }
			echo := func(c net.Conn) error {
				if _, err := c.Write([]byte("x")); err != nil {
					return err
				}
				_, err := io.ReadFull(c, make([]byte, 1))
				return err
			}
			var wifi, lte []*using
			for _, kind := range []struct {
				name string
				open func() (net.Conn, error)
				use  func(net.Conn) error
			}{
				{"tunnel, idle", tunnel(serve(2224, func(c net.Conn) { _, _ = io.Copy(c, c) })), echo},
				{"tunnel, download", tunnel(serve(2225, func(c net.Conn) { _, _ = io.Copy(c, endless{}) })), down},
				{"tunnel, upload", tunnel(serve(2226, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })), up},
				{"GET", request("GET %s/down HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0,2-2"), down},
				{"PUT", request("PUT %s/up HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000"), up},
			} {
				for had := len(lte); len(lte) == had; { // until one of them goes over lte
					c, err := kind.open()
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					_ = c.SetDeadline(time.Now().Add(testTime))
					u := &using{c, kind.name, kind.use, <-from}
					if err := u.use(c); err != nil {
						t.Fatalf("%s: %v", u.kind, err)
					}
					if len(wifi) == 0 || u.from == wifi[0].from { // the first one uses the best link
						wifi = append(wifi, u)
					} else {
						lte = append(lte, u)
					}
				}
			}
			if err := r.lab.Apply(event(0, "lte", what)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var dead sync.WaitGroup
			for _, u := range lte {
				dead.Go(func() {
					for err := error(nil); err == nil; {
						if err = u.use(u.Conn); os.IsTimeout(err) {
							t.Errorf("%s over lte: %v", u.kind, err)
						}
					}
					t.Logf("%s over lte ended after %v", u.kind, time.Since(began))
				})
			}
			dead.Wait()
			for _, u := range wifi {
				if err := u.use(u.Conn); err != nil {
					t.Errorf("%s over wifi: %v", u.kind, err)
				}
			}
			// The kernel would also have given up the connections, but later.
			said := r.proxy.Said()
			if cut, lost := strings.Count(said, "reason=cut"), strings.Count(said, "the link stopped working"); cut != 3 || lost != 2 {
				t.Errorf("%d tunnels and %d requests were ended, want 3 and 2", cut, lost)
			}
			c, err := tunnel(fmt.Sprintf("%s:%d", netlab.OriginAddr, 2224))()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := echo(c); err != nil || <-from != wifi[0].from {
				t.Errorf("the next tunnel: %v", err)
			}
		})
	}
}

// endless is a reader that never ends.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) { return len(p), nil }

// moves reads or writes a few bytes and returns the error.
func moves(do func([]byte) (int, error)) error {
	_, err := do(make([]byte, 32<<10))
	return err
}

// TestRedirectSecure redirects port 443: nothing is decrypted, and the connections of named programs are spread.
func TestRedirectSecure(t *testing.T) {
	for _, firewall := range []string{"nftables", "iptables"} {
		for _, named := range []string{`"curl"`, ``} {
			t.Run(fmt.Sprintf("R163 R164 %s, programs %s", firewall, named), func(t *testing.T) {
				r := newRig(t, quick(), netlab.NginxOptions{})
				config := r.file()
				if err := os.WriteFile(config, fmt.Appendf(nil, "spread_programs = [%s]\n", named), 0o644); err != nil {
					t.Fatal(err)
				}
				r.options.Args = []string{"--config", config}
				r.serve()
				said := string(r.ok(r.redirect(firewall, "on", "--https", "--no-quic")).body)
				if !strings.Contains(said, "TCP port 80, 443") || !strings.Contains(said, "UDP port 443 is rejected") {
					t.Errorf("on says %q", said)
				}
				o := r.object(5_000_000)
				cert, err := r.lab.Certificate()
				if err != nil {
					t.Fatal(err)
				}
				got := r.over(func() {
					var all sync.WaitGroup
					for range 4 {
						all.Go(func() {
							r.isObject(r.ok(r.asNobody("curl", "-sS", "--fail", "--cacert", cert.CA, r.nginx.SecureURL(o))).body, o)
						})
					}
					all.Wait()
				})
				if (got["lte"] > int64(o.Size)) != (named != "") || got["wifi"] < int64(o.Size) {
					t.Errorf("the links carried %v", got)
				}
				quic := fmt.Sprintf("exec 3>/dev/udp/%s/443; echo x >&3; sleep 0.2; echo x >&3", netlab.OriginAddr)
				if r.asNobody("bash", "-c", quic).code == 0 {
					t.Error("R164 UDP to port 443 is not rejected")
				}
				r.ok(r.redirect(firewall, "off"))
				if left := r.rules(); len(left) > 0 {
					t.Errorf("after off: %q", left)
				}
				if _, err := exec.LookPath("bash"); err == nil && r.asNobody("bash", "-c", strings.ReplaceAll(quic, "; echo x >&3", "")).code != 0 {
					t.Error("the check of UDP itself fails")
				}
			})
		}
	}
}
