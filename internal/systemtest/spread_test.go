package systemtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/core/spread"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// tunnel is a CONNECT through the proxy.
type tunnel struct {
	net.Conn
	br *bufio.Reader
}

// connect opens a tunnel for a program.
func (r *rig) connect(agent string) *tunnel {
	r.t.Helper()
	c, err := net.Dial("tcp", r.url.Host)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\nUser-Agent: %s\r\n\r\n", agent)
	t := &tunnel{c, bufio.NewReader(c)}
	resp, err := http.ReadResponse(t.br, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%v, %v", resp, err)
	}
	return t
}

// get requests the object through a tunnel and reads it.
func (t *tunnel) get() (int64, error) {
	fmt.Fprint(t, "GET /object HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	resp, err := http.ReadResponse(t.br, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return io.Copy(io.Discard, resp.Body)
}

// undivided returns the number of open tunnels and undivided requests of a link, and their bytes.
func (r *rig) undivided(name string) (open int, bytes int64) {
	for _, l := range r.d.Status().Links {
		if l.Name == name {
			return l.Undivided, l.UndividedBytes
		}
	}
	return 0, 0
}

// dialed returns the number of connections dialed over each link, as text.
func (r *rig) dialed() string { return fmt.Sprintf("wifi %d, lte %d", r.wifi.dialed(), r.lte.dialed()) }

// TestSpread opens tunnels through the proxy, eight concurrently.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name        string
		mode        spread.Mode
		agent, want string
	}{
		{"a downloader", spread.Auto, "aria2/1.36.0", "wifi 4, lte 4"},
		{"a browser", spread.Auto, "Mozilla/5.0 (X11; Linux)", "wifi 8, lte 0"},
		{"off", spread.Off, "aria2/1.36.0", "wifi 8, lte 0"},
		{"all", spread.All, "Mozilla/5.0 (X11; Linux)", "wifi 4, lte 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(t, Object{Size: mid})
			cfg := settings()
			cfg.Spread = c.mode
			r := newRig(t, s, cfg, "wifi", "lte")
			var all sync.WaitGroup
			for range 8 {
				tun := r.connect(c.agent)
				all.Go(func() {
					if n, err := tun.get(); n != mid || err != nil {
						t.Errorf("%d bytes, %v", n, err)
					}
				})
			}
			all.Wait()
			if got := r.dialed(); got != c.want {
				t.Errorf("connections: %s, want %s", got, c.want)
			}
			if os.Getenv("TRIBUTARY_EMULATOR") != "" {
				t.Skip("qemu-user has no TCP_INFO, which counts a tunnel's bytes")
			}
			until(t, "status counts the tunnels and their bytes", limit, func() bool {
				wifi, a := r.undivided("wifi")
				lte, b := r.undivided("lte")
				return wifi+lte == 8 && a+b >= 8*mid
			})
			if l := r.d.Status().Links[0]; l.Bytes < l.UndividedBytes || l.UndividedBytes == 0 || l.Undivided == 0 {
				t.Errorf("status: %+v", l)
			}
		})
	}
	t.Run("one after the other", func(t *testing.T) {
		r := newRig(t, New(t, Object{Size: mid}), settings(), "wifi", "lte")
		for range 4 {
			tun := r.connect("curl/8")
			if n, err := tun.get(); n != mid || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			tun.Close()
			until(t, "the tunnel has ended", limit, func() bool { open, _ := r.undivided("wifi"); return open == 0 })
		}
		if got := r.dialed(); got != "wifi 4, lte 0" {
			t.Errorf("connections: %s", got)
		}
	})
	t.Run("parallel PUTs", func(t *testing.T) {
		s := New(t, Object{Size: mid})
		r := newRig(t, s, settings(), "wifi", "lte")
		var bodies []*io.PipeWriter
		var all sync.WaitGroup
		for range 4 {
			from, to := io.Pipe()
			bodies = append(bodies, to)
			q, _ := http.NewRequestWithContext(context.Background(), http.MethodPut, s.URL(), from)
			q.Header.Set("User-Agent", "aws-sdk")
			all.Go(func() {
				resp, err := client(t, r.url).Do(q)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
			_, _ = to.Write([]byte("part"))
		}
		until(t, "four requests run", limit, func() bool {
			a, _ := r.undivided("wifi")
			b, _ := r.undivided("lte")
			return a == 2 && b == 2
		})
		for _, to := range bodies {
			to.Close()
		}
		all.Wait()
	})
}

// TestSpreadDies lets links die in ways that the proxy notices: their tunnels are reset immediately, and new ones use other links.
func TestSpreadDies(t *testing.T) {
	s := New(t, Object{Size: mid})
	r := newRig(t, s, settings(), "wifi", "lte")
	var tunnels []*tunnel
	for range 4 {
		tunnels = append(tunnels, r.connect("aria2/1.36.0"))
	}
	r.source.Set(named("wifi")...)
	reset := 0
	for i, tun := range tunnels {
		if i%2 == 0 {
			if n, err := tun.get(); n != mid || err != nil {
				t.Errorf("R145 tunnel %d over wifi: %d bytes, %v", i, n, err)
			}
			continue
		}
		if _, err := tun.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNRESET) {
			reset++
		}
	}
	if reset != 2 {
		t.Errorf("R145 %d tunnels of lte were reset", reset)
	}
	if n, err := r.connect("aria2/1.36.0").get(); n != mid || err != nil {
		t.Errorf("R145 the next one: %d bytes, %v", n, err)
	}
	if got := r.dialed(); !strings.HasPrefix(got, "wifi 3,") {
		t.Errorf("connections: %s", got)
	}
}
