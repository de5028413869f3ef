package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// imageUser is the user of the image, as in tools/dist/image.
const imageUser = 65532

// TestRelayImage: the image of a release runs the relay read-only, as a user without privileges, at port 443, with the
// commands of docs/RELAY.md. A client pairs and downloads over all links, and the relay's key survives the container.
func TestRelayImage(t *testing.T) {
	if !matrix() {
		t.Skip("it builds an image: make matrix")
	}
	need(t, "podman", "podman")
	r := newRig(t, quick(), netlab.NginxOptions{})
	h := r.rentNetwork()
	binary, archive := filepath.Join(r.lab.Dir, "static"), filepath.Join(r.lab.Dir, "image.tar")
	build := exec.CommandContext(r.ctx, "go", "build", "-o", binary, "./cmd/tributary")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pack := exec.CommandContext(r.ctx, "go", "run", "./dist/image", "-o", archive, "-config", "../deploy/systemd/tributary.toml", "-version", "1.2.3",
		"-revision", "test", "linux/"+runtime.GOARCH+"="+binary)
	pack.Dir, pack.Env = "../../tools", append(os.Environ(), "SOURCE_DATE_EPOCH=0")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	const name = "relay"
	podman := func(args ...string) *exec.Cmd {
		store := filepath.Join(r.lab.Dir, "podman")
		all := []string{
			"--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
		}
		if _, err := exec.LookPath("runc"); err == nil { // crun refuses to run on machines with both versions of cgroups
			all = append(all, "--runtime", "runc")
		}
		return exec.CommandContext(r.ctx, "podman", append(all, args...)...)
	}
	ok := func(args ...string) string {
		t.Helper()
		cmd := podman(args...)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("podman %v: %v: %s", args, err, said.String())
		}
		return string(out)
	}
	ok("load", "-q", "-i", archive)
	ok("tag", strings.Fields(ok("images", "-q"))[0], "tributary")
	t.Cleanup(func() {
		if out, err := exec.Command("podman", podman("rm", "-f", "-a", "-t", "2").Args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	run := documented(r, "podman run ")
	run[slices.Index(run, "host")] = "ns:/run/netns/" + h.name
	// there is no journal, and root may not be allowed to raise limits to those that podman sets
	run = append([]string{"run", "--log-driver", "k8s-file", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=256:256"}, run[1:]...)
	invite := documented(r, "podman exec ")
	invite[len(invite)-1] = hostAddr + ":443"
	serve := func() {
		t.Helper()
		ok(run...)
		wait, cancel := context.WithTimeout(r.ctx, 20*time.Second)
		defer cancel()
		if err := r.lab.WaitForClient(wait, hostAddr+":443"); err != nil {
			t.Fatalf("%v: %s", err, ok("logs", name))
		}
	}
	serve()

	relays := 0
	for _, pid := range h.pids() {
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		var is unix.Stat_t
		if !strings.Contains(string(argv), "relay\x00serve") || unix.Stat(filepath.Join("/proc", strconv.Itoa(pid)), &is) != nil {
			continue
		}
		relays++
		if is.Uid != imageUser {
			t.Errorf("the relay runs as user %d", is.Uid)
		}
		mounts, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
		root, _, _ := strings.Cut(string(mounts), "\n")
		if fields := strings.Fields(root); len(fields) < 6 || fields[4] != "/" || !strings.HasPrefix(fields[5], "ro,") {
			t.Errorf("its root is not read-only: %s", root)
		}
	}
	if relays != 1 {
		t.Errorf("%d relays run", relays)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(r.lab.Dir, "own"))
	r.pairs(ok(invite...), hostAddr+":443")

	client := func() (key string) {
		t.Helper()
		said := ok("exec", name, "tributary", "relay", "clients")
		lines := strings.Split(strings.TrimSpace(said), "\n")
		if len(lines) != 2 { // a head and a client
			t.Fatalf("clients: %s", said)
		}
		return strings.Fields(lines[1])[0]
	}
	before := client()
	ok("rm", "-f", "-t", "2", name)
	serve()
	if after := client(); after != before {
		t.Errorf("another container knows %s instead of %s", after, before)
	}
}

// documented returns the arguments of the one command in docs/RELAY.md that begins with some words.
func documented(r *rig, words string) []string {
	r.Helper()
	text, err := os.ReadFile("../../docs/RELAY.md")
	if err != nil {
		r.Fatal(err)
	}
	var found [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    "+words) {
			found = append(found, strings.Fields(line)[1:])
		}
	}
	if len(found) != 1 {
		r.Fatalf("docs/RELAY.md has %d commands that begin with %q", len(found), words)
	}
	return found[0]
}
