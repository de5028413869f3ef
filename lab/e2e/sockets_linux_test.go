package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestSocketActivation: the ports belong to systemd, and stay open when the program ends.
func TestSocketActivation(t *testing.T) {
	tool, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("systemd-socket-activate is not installed: apt-get install systemd")
	}
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(1_000_000)
	activated := func(listen ...string) (said func() string, cmd *exec.Cmd) {
		args := []string{"-E", "HOME=" + r.lab.Dir}
		for _, l := range listen {
			args = append(args, "-l", l)
		}
		args = append(args, r.options.Binary, "serve", "--listen", netlab.ProxyAddr, "--admin", netlab.AdminAddr, "--link", "wifi", "--link", "lte")
		cmd = r.lab.Client(r.ctx, tool, args...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return out.String, cmd
	}
	_, cmd := activated(netlab.ProxyAddr, netlab.AdminAddr) // starts the program at the first connection
	if err := r.lab.WaitForClient(r.ctx, netlab.ProxyAddr); err != nil {
		t.Fatal(err)
	}
	r.download(o.URL, o)
	if c := r.client("curl", "-sS", "--fail", "http://"+netlab.AdminAddr+"/healthz"); c.failed != nil {
		t.Errorf("the admin port: %v %s", c.failed, c.said)
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
	_ = cmd.Wait()

	said, cmd := activated(netlab.ProxyAddr, "127.0.0.1:19999")
	_ = r.lab.WaitForClient(r.ctx, netlab.ProxyAddr)
	_ = cmd.Wait()
	if !strings.Contains(said(), "127.0.0.1:19999") || !strings.Contains(said(), "systemctl edit tributary.socket") {
		t.Errorf("a port that the configuration does not name: %s", said())
	}
}
