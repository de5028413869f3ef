package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// relayUser is a user without an account, like those that systemd makes for a service.
const relayUser = 61185

// TestRelayService: the relay takes a socket that systemd opened, and root's commands leave nothing in the state folder
// that its owner cannot read, although only root can look into the folder above.
func TestRelayService(t *testing.T) {
	tool, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("systemd-socket-activate is not installed: apt-get install systemd")
	}
	r := newRig(t, quick(), netlab.NginxOptions{})
	private := filepath.Join(r.lab.Dir, "private")
	state := filepath.Join(private, "relay")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, relayUser, relayUser); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, relayPort)
	r.waitForOrigin(relayPort, r.background(tool, "-E", "STATE_DIRECTORY="+state, "-l", addr, r.options.Binary, "relay", "serve"))
	command := func(args ...string) string {
		t.Helper()
		c := r.lab.Server(r.ctx, r.options.Binary, append([]string{"relay"}, args...)...)
		c.Env = append(os.Environ(), "STATE_DIRECTORY="+state)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(r.lab.Dir, "own"))
	join := r.lab.Client(r.ctx, r.options.Binary, "relay", "join", "-")
	join.Stdin = strings.NewReader(command("pair", addr))
	if out, err := join.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said := command("clients"); strings.Count(said, "\n") != 2 {
		t.Errorf("clients: %s", said)
	}
	files, err := os.ReadDir(state)
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != relayUser {
			t.Errorf("%s belongs to %d", f.Name(), s.Uid)
		}
	}
	running := 0
	pids, err := exec.Command("ip", "netns", "pids", r.lab.ServerName()).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		argv, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		var is unix.Stat_t
		if strings.Contains(string(argv), "relay\x00serve") && unix.Stat(filepath.Join("/proc", pid), &is) == nil {
			running++
			if is.Uid != relayUser {
				t.Errorf("%q runs as %d", argv, is.Uid)
			}
		}
	}
	if running != 1 {
		t.Errorf("%d relays run", running)
	}
}
