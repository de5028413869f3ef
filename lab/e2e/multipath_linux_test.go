package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// connecting starts a proxy for CONNECT over TLS at the origin's address. Its sockets speak MPTCP, as all listeners in Go do.
func (r *rig) connecting(cert netlab.Certificate) (addr string) {
	pair, err := tls.LoadX509KeyPair(cert.Chain, cert.Key)
	if err != nil {
		r.Fatal(err)
	}
	addr = fmt.Sprintf("%s:%d", netlab.OriginAddr, relayPort)
	var l net.Listener
	if err := r.lab.InServer(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
		r.Fatal(err)
	}
	s := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if user, password, _ := (&http.Request{Header: http.Header{"Authorization": q.Header["Proxy-Authorization"]}}).BasicAuth(); user != "me" || password != "secret" {
				w.WriteHeader(http.StatusProxyAuthRequired)
				return
			}
			var c net.Conn
			if err := r.lab.InServer(func() (err error) { c, err = net.Dial("tcp", q.Host); return err }); err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer c.Close()
			client, rest, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer client.Close()
			io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
			go func() {
				io.Copy(c, rest)
				c.(*net.TCPConn).CloseWrite()
			}()
			io.Copy(client, c)
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			r.Error(err)
		}
	}()
	r.Cleanup(func() { s.Close(); <-done })
	return addr
}

// TestMultipath: one tunnel's bytes arrive over both links through a proxy whose listener speaks MPTCP, and doctor and
// status report it. A link that the kernel would use but must not use ends that.
func TestMultipath(t *testing.T) {
	sc := netlab.Scenario{Name: "multipath", MPTCP: true, Links: []netlab.LinkSpec{ // so slow that a busy machine fills both
		netlab.Symmetric("wifi", 5*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 5*netlab.Mbit, 40*time.Millisecond),
	}}
	r := newRig(t, sc, netlab.NginxOptions{})
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.lab.Server(r.ctx, "ip", "addr", "add", relayedAddr+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addr := r.connecting(cert)
	config := filepath.Join(r.lab.Dir, "multipath.toml")
	r.write(config, fmt.Appendf(nil, "[relay]\nurl = \"https://me:secret@%s\"\nmode = \"tunnels\"\n", addr))
	t.Setenv("SSL_CERT_FILE", cert.CA)
	r.options.Args = []string{"--config", config}
	r.serve()
	o := r.object(3_000_000)
	download := func(r *rig) (shares map[string]int64) {
		r.settle()
		before, shares := map[string]int64{}, map[string]int64{}
		for _, name := range r.lab.LinkNames() {
			_, before[name] = r.carried(name)
		}
		args := []string{"-sS", "--fail", "-x", proxyURL, "--cacert", cert.CA, "--connect-to", "::" + relayedAddr + ":", r.nginx.SecureURL(o)}
		r.isObject(r.ok(r.client("curl", args...)).body, o)
		for _, name := range r.lab.LinkNames() {
			_, n := r.carried(name)
			shares[name] = n - before[name]
		}
		return shares
	}
	doctor := func(r *rig) string {
		cmd := r.lab.Client(r.ctx, r.options.Binary, "doctor", "--offline", "--config", config, "--link", "wifi", "--link", "lte")
		out, err := cmd.CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
			r.Fatal(err)
		}
		return string(out)
	}
	t.Run("both links", func(t *testing.T) {
		r := r.on(t)
		var shares map[string]int64
		for range 10 { // on a busy machine a direct tunnel may win the race
			if shares = download(r); min(shares["wifi"], shares["lte"]) > int64(o.Size)/5 {
				break
			}
		}
		if min(shares["wifi"], shares["lte"]) < int64(o.Size)/5 {
			t.Errorf("the links carried %v", shares)
		}
		if said := doctor(r); !strings.Contains(said, "no MPTCP endpoint on wifi") {
			t.Error(said)
		}
	})
	t.Run("a link that must not carry it", func(t *testing.T) {
		r := r.on(t)
		if err := r.proxy.Stop(); err != nil {
			t.Fatal(err)
		}
		r.write(config, fmt.Appendf(nil, "[relay]\nurl = \"https://me:secret@%s\"\nmode = \"tunnels\"\n[link.lte]\nmonthly = \"1GB\"\n", addr))
		r.serve()
		// each tunnel uses one link, which the placement chooses
		shares := download(r)
		if shares["wifi"] > 500_000 && shares["lte"] > 500_000 {
			t.Errorf("the kernel used both: %v", shares)
		}
		if said := doctor(r); strings.Contains(said, "secret") {
			t.Error("doctor shows the password")
		}
		if said := r.proxy.Said(); !strings.Contains(said, "MPTCP endpoint") || strings.Contains(said, "secret") {
			t.Error("the log does not say why, or says too much")
		}
	})
}
