package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestGuards checks that the built program refuses forbidden destinations and other users.
func TestGuards(t *testing.T) {
	r := start(t, quick())
	o := r.object(5_000_000)
	status := func(r *rig, program string, args ...string) string {
		r.Helper()
		out, err := r.lab.Client(r.ctx, program, args...).CombinedOutput()
		if err != nil {
			r.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	code := []string{"curl", "-q", "-s", "-o", "/dev/null", "-w", "%{http_code} %{http_connect}", "-x", proxyURL}
	t.Run("R183 R182 denied destinations", func(t *testing.T) {
		for _, host := range []string{netlab.AdminAddr, "localhost:19091", "169.254.169.254", "[::1]", "0.0.0.0:19091", "2130706433"} {
			got := status(r.on(t), code[0], append(code[1:], "http://"+host+"/metrics")...)
			if want := "403 000"; got != want && !(host == "2130706433" && got == "502 000") { // which curl may send as it is
				t.Errorf("%s: %s, want %s", host, got, want)
			}
		}
	})
	t.Run("R184 a private address of a link's network is fetched over that link alone", func(t *testing.T) {
		for i, client := range []string{"10.77.1.2", "10.77.2.2"} {
			url := strings.Replace(o.URL, netlab.OriginAddr.String(), strings.TrimSuffix(client, "2")+"1", 1)
			requests := r.newRequests(func() { r.download(url, o) })
			for _, q := range requests {
				if q.Client != client {
					t.Errorf("link %d: a request came from %v", i+1, q.Client)
				}
			}
			if len(requests) == 0 {
				t.Errorf("link %d: no request", i+1)
			}
		}
	})
	t.Run("R185 another user", func(t *testing.T) {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("setpriv is not installed: apt-get install util-linux")
		}
		args := append([]string{"--reuid", "65534", "--regid", "65534", "--clear-groups"}, append(code, o.URL)...)
		if got := status(r.on(t), "setpriv", args...); got != "403 000" {
			t.Errorf("nobody gets %s", got)
		}
	})
}

// TestStrangers: connections that another user opens and holds cost the user of the proxy nothing.
func TestStrangers(t *testing.T) {
	r := start(t, quick())
	o := r.object(10_000_000)
	r.ok(r.redirect("nftables", "on"))
	took := func() (sum time.Duration) {
		for range 3 {
			d, err := r.lab.Download(r.ctx, netlab.ProxyAddr, o.URL)
			if err != nil || d.SHA256 != o.SHA256 {
				r.Fatalf("%d, %d bytes, %v", d.Status, d.Bytes, err)
			}
			sum += d.Took
		}
		return sum
	}
	took() // learns the links
	alone := took()
	for _, open := range []struct {
		addr string
		n    int
	}{{netlab.AdminAddr, 3000}, {fmt.Sprintf("%s:80", netlab.OriginAddr), 1024}, {netlab.ProxyAddr, 600}} {
		err := r.lab.InClient(func() error {
			if _, err := unix.SetfsuidRetUid(65534); err != nil { // for this thread: sockets belong to nobody
				return err
			}
			defer func() { _, _ = unix.SetfsuidRetUid(0) }()
			for range open.n {
				if c, err := net.DialTimeout("tcp", open.addr, time.Second); err == nil { // some are refused
					r.Cleanup(func() { c.Close() })
				}
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
	}
	among := took()
	r.Logf("R190 three downloads of 10 MB take %v alone, %v with 4624 connections of another user: %.2f x", alone, among, among.Seconds()/alone.Seconds())
	r.isObject(r.ok(r.asUser("1234", "curl", "-sS", o.URL)).body, o) // a third user, who is redirected, too
	r.metrics()
}
