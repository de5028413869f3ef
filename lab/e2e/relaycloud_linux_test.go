package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// debianRoot names the variable with the folder of a clean Debian that has systemd and cloud-init, made by
// tools/matrix.sh.
const debianRoot = "TRIBUTARY_DEBIAN"

// TestRelayCloudInit: a clean Debian boots with deploy/relay/cloud-init.yaml; a client pairs by the link that the boot
// leaves behind, and downloads over all links. A program with a wrong checksum is not installed.
func TestRelayCloudInit(t *testing.T) {
	debian := os.Getenv(debianRoot)
	if debian == "" {
		t.Skip("there is no clean Debian: make matrix")
	}
	nspawn, err := exec.LookPath("systemd-nspawn")
	if err != nil {
		t.Skip("systemd-nspawn is not installed: apt-get install systemd-container")
	}
	r := newRig(t, quick(), netlab.NginxOptions{})
	h := r.rentNetwork()
	upper, work := filepath.Join(r.lab.Dir, "upper"), filepath.Join(r.lab.Dir, "work")
	for _, dir := range []string{h.root, upper, work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.must("mount", "-t", "overlay", "overlay", "-o", "lowerdir="+debian+",upperdir="+upper+",workdir="+work, h.root)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", h.root).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	const version = "1.2.3"
	sum := r.release(version)
	settings := func(sum string) string {
		text, err := os.ReadFile("../../deploy/relay/cloud-init.yaml")
		if err != nil {
			t.Fatal(err)
		}
		changed := string(text)
		for from, to := range map[string]string{
			"      version=\n": "      version=" + version + "\n", "      sha256_amd64=\n": "      sha256_amd64=" + sum + "\n", "      sha256_arm64=\n": "      sha256_arm64=" + sum + "\n",
			"      releases=https://github.com/tributary-http/tributary/releases/download\n": "      releases=http://" + netlab.OriginAddr.String() + "\n",
		} {
			if strings.Count(changed, from) != 1 {
				t.Fatalf("%q is not one line of cloud-init.yaml", from)
			}
			changed = strings.Replace(changed, from, to, 1)
		}
		return changed
	}
	seed := filepath.Join(h.root, "var/lib/cloud/seed/nocloud")
	if err := os.MkdirAll(seed, 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(seed, "meta-data"), []byte("instance-id: relay\nlocal-hostname: relay\n"))
	r.write(filepath.Join(seed, "network-config"), []byte("version: 2\n")) // the namespace has its addresses
	dir, program := filepath.Join(h.root, "root/tributary-relay"), filepath.Join(h.root, "usr/local/bin/tributary-relay")

	r.write(filepath.Join(seed, "user-data"), []byte(settings(sum)))
	schema, err := exec.CommandContext(r.ctx, "chroot", h.root, "cloud-init", "schema", "--config-file", "/var/lib/cloud/seed/nocloud/user-data").CombinedOutput()
	if err != nil || !strings.Contains(string(schema), "Valid cloud-config") {
		t.Errorf("%v: %s", err, schema)
	}

	boot := func(user string) (stop func()) {
		t.Helper()
		r.write(filepath.Join(seed, "user-data"), []byte(user))
		cmd := exec.CommandContext(r.ctx, nspawn, "--quiet", "--register=no", "--keep-unit", "--boot", "--console=pipe", "--machine="+h.name,
			"--directory="+h.root, "--network-namespace-path=/run/netns/"+h.name)
		cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network") // as it is on a real machine
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		stopped := false
		stop = func() {
			if stopped {
				return
			}
			stopped = true
			_ = cmd.Process.Signal(unix.SIGTERM)
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				_ = cmd.Process.Kill()
				<-ended
			}
			_ = os.RemoveAll("/run/systemd/nspawn/propagate/" + h.name)
			if t.Failed() {
				log, _ := os.ReadFile(filepath.Join(h.root, "var/log/cloud-init-output.log"))
				t.Logf("systemd-nspawn said:\n%s\ncloud-init said:\n%s", said.String(), log)
			}
		}
		t.Cleanup(stop)
		r.until("cloud-init ends", func() bool {
			_, err := os.Stat(filepath.Join(h.root, "var/lib/cloud/instances/relay/boot-finished"))
			return err == nil
		})
		return stop
	}
	log := func() string {
		text, err := os.ReadFile(filepath.Join(h.root, "var/log/cloud-init-output.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	stop := boot(settings(strings.Repeat("0", 64)))
	if said := log(); !strings.Contains(said, "does not have the checksum") {
		t.Errorf("cloud-init does not say that the checksum is wrong: %s", said)
	}
	if _, err := os.Stat(program); err == nil {
		t.Error("a program with another checksum is installed")
	}
	stop()
	if t.Failed() {
		return
	}
	for _, of := range []string{"var/lib/cloud/instance", "var/lib/cloud/instances", "var/log/cloud-init-output.log"} { // as if it were new
		if err := os.RemoveAll(filepath.Join(h.root, of)); err != nil {
			t.Fatal(err)
		}
	}

	began := time.Now()
	boot(settings(sum))
	link, err := os.ReadFile(filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("from the start of the server to the link: %v", time.Since(began))
	if info, err := os.Stat(filepath.Join(dir, "link")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the link's file: %v, %v", info, err)
	}
	if !strings.HasPrefix(string(link), "tributary://") || strings.Contains(log(), strings.TrimSpace(string(link))) {
		t.Error("the file has no link, or the log has it")
	}
	if h.knob() != "0" {
		t.Error("slow start after idle is as before")
	}
	relays := 0
	for _, pid := range h.pids() {
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		var is unix.Stat_t
		if strings.Contains(string(argv), "relay\x00serve") && unix.Stat(filepath.Join("/proc", strconv.Itoa(pid)), &is) == nil {
			relays++
			if is.Uid < 61184 || is.Uid > 65519 { // systemd's dynamic users
				t.Errorf("the relay runs as user %d", is.Uid)
			}
		}
	}
	if relays != 1 {
		t.Errorf("%d relays run", relays)
	}

	t.Setenv("XDG_STATE_HOME", filepath.Join(r.lab.Dir, "own"))
	r.pairs(string(link), hostAddr+":443")
}

// release writes an archive of the program to the place where first-boot.sh looks for it, and returns its SHA-256.
func (r *rig) release(version string) (sum string) {
	r.Helper()
	binary, err := os.ReadFile(r.options.Binary)
	if err != nil {
		r.Fatal(err)
	}
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[strings.TrimSpace(r.local("uname", "-m"))]
	name := fmt.Sprintf("tributary_%s_linux_%s", version, arch)
	dir := filepath.Join(r.nginx.Root(), "v"+version)
	if err := os.Mkdir(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	path := filepath.Join(dir, name+".tar.gz")
	f, err := os.Create(path)
	if err != nil {
		r.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	err = w.WriteHeader(&tar.Header{Name: name + "/tributary", Mode: 0o755, Size: int64(len(binary)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.Write(binary)
	}
	for _, c := range []interface{ Close() error }{w, z, f} {
		if closeErr := c.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		r.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	of := sha256.Sum256(text)
	return hex.EncodeToString(of[:])
}

// pairs pairs with a relay by its link, and downloads through it over all links.
func (r *rig) pairs(link, addr string) {
	r.Helper()
	join := r.lab.Client(r.ctx, r.options.Binary, "relay", "join", "-")
	join.Stdin = strings.NewReader(link)
	if out, err := join.CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	config := filepath.Join(r.lab.Dir, "joined.toml")
	r.write(config, fmt.Appendf(nil, "[relay]\naddress = %q\nmode = \"tunnels\"\n", addr))
	r.options.Args = []string{"--config", config, "--log-level", "debug"}
	r.serve()
	for _, name := range r.lab.LinkNames() {
		r.until("there is a lane over "+name, func() bool { return strings.Contains(r.proxy.Said(), `"relay lane made" link=`+name) })
	}
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	r.settle()
	sent := map[string]int64{}
	for _, name := range r.lab.LinkNames() {
		_, sent[name] = r.carried(name)
	}
	o := r.object(5_000_000)
	r.isObject(r.ok(r.curl("--fail", "--cacert", cert.CA, "--connect-to", "::"+relayedAddr+":", r.nginx.SecureURL(o))).body, o)
	for _, name := range r.lab.LinkNames() {
		if _, n := r.carried(name); n-sent[name] < 1_000_000 {
			r.Errorf("%s carried %d bytes", name, n-sent[name])
		}
	}
}
