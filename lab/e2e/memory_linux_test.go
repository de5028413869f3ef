package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestSlowClients: with 100 clients that read slowly, the program's memory stays within the budget and 25 MB. make matrix looks at
// doors other than the proxy.
func TestSlowClients(t *testing.T) {
	for _, d := range []struct {
		name, config string
		enter        func(*rig, netlab.Object) (net.Conn, *http.Request, error)
	}{
		{"proxy", "", func(r *rig, o netlab.Object) (net.Conn, *http.Request, error) {
			return r.enter(netlab.ProxyAddr, r.nginx.NamedURL(o))
		}},
		{
			"gateway", fmt.Sprintf("gateway = %q\ngateway_hosts = [%q]\n", gatewayAddr, netlab.OriginName),
			func(r *rig, o netlab.Object) (net.Conn, *http.Request, error) {
				return r.enter(gatewayAddr, gatewayURL+"/https/"+strings.TrimPrefix(r.nginx.NamedSecureURL(o), "https://"))
			},
		},
		{"decrypted tunnels", "intercept = true\n", func(r *rig, o netlab.Object) (net.Conn, *http.Request, error) {
			return r.enterTunnel(r.nginx.NamedSecureURL(o))
		}},
	} {
		if d.config != "" && !matrix() {
			continue
		}
		t.Run("R191 the memory of 100 slow clients: "+d.name, func(t *testing.T) {
			r := newRig(t, shipped(t, "clients"), netlab.NginxOptions{})
			var err error
			if r.options.Binary, err = plainBinary(); err != nil {
				t.Fatal(err)
			}
			if d.config != "" {
				config := filepath.Join(r.lab.Dir, "slow.toml")
				r.write(config, []byte(d.config))
				r.options.Args = []string{"--config", config}
				r.ok(r.client(r.options.Binary, "ca", "init", "--hosts", netlab.OriginName))
			}
			r.serve()
			o := r.object(50_000_000)
			enter := func() (net.Conn, *http.Request, error) { return d.enter(r, o) }
			var clients sync.WaitGroup
			for range 100 {
				clients.Go(func() {
					if err := r.sip(enter, 200_000, 2_500_000); err != nil {
						t.Error(err)
					}
				})
			}
			clients.Wait()
			most, bound := r.peakMemory(), int64(r.metrics()["tributary_budget_bytes"])+25_000_000
			if t.Logf("the program took %.1f MB", float64(most)/1e6); most > bound {
				t.Errorf("want %.1f MB at most", float64(bound)/1e6)
			}
		})
	}
}

// enter connects to a port of the program with a small receive buffer, and writes a request.
func (r *rig) enter(address, url string) (net.Conn, *http.Request, error) {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	conn, err := r.lab.DialContext(r.ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	if err := narrow(conn); err != nil {
		return nil, nil, err
	}
	if address == netlab.ProxyAddr {
		return conn, req, req.WriteProxy(conn)
	}
	return conn, req, req.Write(conn)
}

// enterTunnel opens a tunnel that the program decrypts, and writes a request into it.
func (r *rig) enterTunnel(url string) (net.Conn, *http.Request, error) {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	pem, err := os.ReadFile(filepath.Join(r.lab.Dir, ".local", "state", "tributary", "ca.pem"))
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	conn, err := r.tunnel(r.ctx, net.JoinHostPort(req.URL.Hostname(), "443"), "curl")
	if err != nil {
		return nil, nil, err
	}
	if err := narrow(conn); err != nil {
		return nil, nil, err
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: req.URL.Hostname()})
	return secure, req, req.Write(secure)
}

// narrow gives a connection a small receive buffer.
func narrow(conn net.Conn) error {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10) })
	return errors.Join(err, serr)
}

// sip downloads at perSecond bytes per second, and leaves after n bytes.
func (r *rig) sip(enter func() (net.Conn, *http.Request, error), perSecond, n int64) error {
	conn, req, err := enter()
	if err != nil {
		return err
	}
	defer conn.Close()
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK { // the body is not closed: that would read all of it
		return fmt.Errorf("status %s", res.Status)
	}
	const piece = 16 << 10
	pace := time.NewTicker(piece * time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for got := int64(0); got < n; got += piece {
		if _, err := io.CopyN(io.Discard, res.Body, piece); err != nil {
			return err
		}
		<-pace.C
	}
	return nil
}

// peakMemory returns the most resident memory that the program has had, in bytes.
func (r *rig) peakMemory() int64 {
	r.Helper()
	text := string(r.read(fmt.Sprintf("/proc/%d/status", r.proxy.PID())))
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(text)
	if m == nil {
		r.Fatal("no VmHWM in the status of the process")
	}
	kB, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		r.Fatal(err)
	}
	return kB << 10
}
