package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	hostAddr   = "203.0.113.9" // address of the rented server, behind the origin's namespace
	hostRouter = "203.0.113.1"
)

// rented is a clean server: a separate network namespace, and a root folder with the programs of this machine and nothing
// else.
type rented struct {
	*rig
	name, root string // name of the namespace; folder of the files
	key        string // key that root accepts there
}

// rentNetwork makes the network of a server, without files. It is a namespace behind that of the origin.
func (r *rig) rentNetwork() *rented {
	r.Helper()
	h := &rented{rig: r, name: fmt.Sprintf("tribs-%d-900", os.Getpid()), root: filepath.Join(r.lab.Dir, "host"), key: filepath.Join(r.lab.Dir, "id")}
	r.must("ip", "netns", "add", h.name)
	r.Cleanup(func() {
		for {
			pids := h.pids()
			if len(pids) == 0 {
				break
			}
			for _, pid := range pids {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if out, err := exec.Command("ip", "netns", "del", h.name).CombinedOutput(); err != nil {
			r.Errorf("%v: %s", err, out)
		}
	})
	r.must("ip", "link", "add", "rented", "netns", r.lab.ServerName(), "type", "veth", "peer", "name", "eth0", "netns", h.name)
	for _, args := range [][]string{
		{"-n", r.lab.ServerName(), "addr", "add", hostRouter + "/24", "dev", "rented"},
		{"-n", r.lab.ServerName(), "link", "set", "rented", "up"},
		{"-n", r.lab.ServerName(), "addr", "add", relayedAddr + "/32", "dev", "lo"},
		{"netns", "exec", r.lab.ServerName(), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
		{"-n", h.name, "addr", "add", hostAddr + "/24", "dev", "eth0"},
		{"-n", h.name, "link", "set", "eth0", "up"},
		{"-n", h.name, "link", "set", "lo", "up"},
		{"-n", h.name, "route", "add", "default", "via", hostRouter},
	} {
		r.must("ip", args...)
	}
	return h
}

// pids lists the processes in the server's namespace.
func (h *rented) pids() (all []int) {
	out, err := exec.Command("ip", "netns", "pids", h.name).Output()
	if err != nil {
		return nil
	}
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// rent makes a server with sshd.
func (r *rig) rent() *rented {
	r.Helper()
	const sshd = "/usr/sbin/sshd"
	for _, program := range []string{sshd, "/usr/bin/ssh", "/usr/bin/ssh-keygen"} {
		if _, err := os.Stat(program); err != nil {
			r.Skip(program + " is not installed: apt-get install openssh-server openssh-client")
		}
	}
	h := r.rentNetwork()
	for _, dir := range []string{"dev", "proc", "root", "run/sshd", "tmp", "usr/local/bin", "var/lib", "var/log", "etc/ssh", "etc/sysctl.d"} {
		if err := os.MkdirAll(filepath.Join(h.root, dir), 0o755); err != nil {
			r.Fatal(err)
		}
	}
	mounts := []string{"mount -t proc proc proc", "mount --rbind /dev dev"}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64", "libexec"} {
		if _, err := os.Stat("/usr/" + dir); err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(h.root, "usr", dir), 0o755); err != nil {
			r.Fatal(err)
		}
		if err := os.Symlink("usr/"+dir, filepath.Join(h.root, dir)); err != nil {
			r.Fatal(err)
		}
		mounts = append(mounts, "mount --bind /usr/"+dir+" usr/"+dir)
	}
	r.write(filepath.Join(h.root, "etc/passwd"), []byte("root:*:0:0:root:/root:/bin/sh\nsshd:*:101:65534::/run/sshd:/usr/sbin/nologin\n"))
	r.write(filepath.Join(h.root, "etc/group"), []byte("root:*:0:\nnogroup:*:65534:\n"))
	for _, key := range []string{h.key, filepath.Join(h.root, "etc/ssh/host")} {
		r.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	}
	public, err := os.ReadFile(h.key + ".pub")
	if err != nil {
		r.Fatal(err)
	}
	r.write(filepath.Join(h.root, "etc/ssh/keys"), public)
	r.write(filepath.Join(h.root, "etc/ssh/config"), []byte("HostKey /etc/ssh/host\nAuthorizedKeysFile /etc/ssh/keys\nStrictModes no\nUsePAM no\n"+
		"PermitRootLogin prohibit-password\nListenAddress "+hostAddr+"\n"))
	script := "cd " + h.root + " && " + strings.Join(mounts, " && ") + " && exec chroot . " + sshd + " -D -e -f /etc/ssh/config"
	cmd := exec.CommandContext(r.ctx, "ip", "netns", "exec", h.name, "sh", "-c", script)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	r.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if r.Failed() {
			r.Logf("sshd said:\n%s", said.String())
		}
	})
	r.until("sshd listens", func() bool {
		c, err := r.lab.DialContext(r.ctx, "tcp", net.JoinHostPort(hostAddr, "22"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return h
}

func (r *rig) must(name string, args ...string) {
	r.Helper()
	if out, err := exec.CommandContext(r.ctx, name, args...).CombinedOutput(); err != nil {
		r.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

// files lists everything below the given folders, with its mode and size.
func (r *rig) files(dirs ...string) (all []string) {
	r.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path == filepath.Join(dir, "proc") || path == filepath.Join(dir, "dev"):
				return fs.SkipDir
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			line := fmt.Sprintf("%s %v", path, info.Mode())
			if info.Mode().IsRegular() {
				line += fmt.Sprintf(" %d", info.Size())
			}
			all = append(all, line)
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
	}
	return all
}

// ssh returns the flags that let a command reach the server.
func (h *rented) ssh() []string {
	return []string{
		"--ssh-option", "IdentityFile=" + h.key, "--ssh-option", "UserKnownHostsFile=/dev/null",
		"--ssh-option", "StrictHostKeyChecking=no", "--ssh-option", "LogLevel=ERROR", "--ssh-option", "BatchMode=yes",
	}
}

// knob returns the server's setting of slow start after idle.
func (h *rented) knob() string {
	h.Helper()
	out, err := exec.Command("ip", "netns", "exec", h.name, "cat", "/proc/sys/net/ipv4/tcp_slow_start_after_idle").Output()
	if err != nil {
		h.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestRelaySetup: one command leads from a clean server to a tunnel over all links in less than a minute, and another one
// removes every trace of the relay on both sides.
func TestRelaySetup(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	h := r.rent()
	own := filepath.Join(r.lab.Dir, "own")
	for _, dir := range []string{"state", "config"} {
		if err := os.MkdirAll(filepath.Join(own, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(own, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(own, "config"))
	settings := filepath.Join(own, "config", "tributary", "config.toml")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(settings, []byte("# mine\nlinks = [\"wifi\", \"lte\"]\n"))
	before, slowStart := r.files(h.root, own), h.knob()
	if slowStart != "1" {
		t.Fatalf("slow start after idle is %s", slowStart)
	}
	command := func(args ...string) (string, error) {
		t.Helper()
		out, err := r.lab.Client(r.ctx, r.options.Binary, append(append([]string{"relay"}, args...), h.ssh()...)...).CombinedOutput()
		t.Logf("%v:\n%s", args, out)
		return string(out), err
	}
	began := time.Now()
	said, err := command("setup", "root@"+hostAddr)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"there is no systemd", "wifi", "lte", "together"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if h.knob() != "0" {
		t.Error("slow start after idle is as before")
	}
	r.options.Args = []string{"--config", settings}
	r.serve()
	for _, name := range r.lab.LinkNames() {
		r.until("there is a lane over "+name, func() bool { return strings.Contains(r.proxy.Said(), `"relay lane made" link=`+name) })
	}
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	get := func(size netlab.Bytes) {
		t.Helper()
		o := r.object(size)
		r.isObject(r.ok(r.curl("--fail", "--cacert", cert.CA, "--connect-to", "::"+relayedAddr+":", r.nginx.SecureURL(o))).body, o)
	}
	get(1000)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("from the command to the first byte: %v", took)
	} else {
		t.Logf("from the command to the first byte: %v", took)
	}
	r.settle()
	sent := map[string]int64{}
	for _, name := range r.lab.LinkNames() {
		_, sent[name] = r.carried(name)
	}
	get(5_000_000)
	for _, name := range r.lab.LinkNames() {
		if _, n := r.carried(name); n-sent[name] < 1_000_000 {
			t.Errorf("%s carried %d bytes", name, n-sent[name])
		}
	}
	r.stopped = true
	if err := r.proxy.Stop(); err != nil {
		t.Error(err)
	}

	// A second setup installs another version: it replaces the first, and the server still knows one client.
	if _, err := command("setup", "root@"+hostAddr, "--no-measure"); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(h.root, "var/lib/tributary-relay/relay-server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known struct{ Clients map[string]any }
	if err := json.Unmarshal(kept, &known); err != nil || len(known.Clients) != 1 {
		t.Errorf("%d clients, %v", len(known.Clients), err)
	}
	if _, err := command("undo", "root@"+hostAddr); err != nil {
		t.Fatal(err)
	}
	if after := r.files(h.root, own); !slices.Equal(after, before) {
		t.Errorf("left, or gone:\n%s", strings.Join(difference(before, after), "\n"))
	}
	if now := h.knob(); now != slowStart {
		t.Errorf("slow start after idle is %s, was %s", now, slowStart)
	}
	for _, pid := range h.pids() {
		if argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); strings.Contains(string(argv), "tributary") {
			t.Errorf("it still runs: %q", argv)
		}
	}
	if _, err := command("undo", "root@"+hostAddr); err != nil {
		t.Error("once more:", err)
	}
}

// difference returns the entries that are in only one of two lists.
func difference(before, after []string) (all []string) {
	for _, line := range before {
		if !slices.Contains(after, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			all = append(all, "+ "+line)
		}
	}
	return all
}
