package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tributary-http/tributary/internal/lab"
)

// need skips a test whose client is not installed.
func need(t *testing.T, program, debian string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed: apt-get install %s", program, debian)
	}
}

// overBoth fails the test unless do lets both links bring something.
func (r *rig) overBoth(do func()) {
	r.Helper()
	before := r.metrics()
	do()
	after := r.metrics()
	for _, name := range r.lab.LinkNames() {
		if after.Received(name) == before.Received(name) {
			r.Errorf("%s brought nothing", name)
		}
	}
}

const pythonGet = `
import sys, requests
r = requests.get(sys.argv[1], stream=True)
r.raise_for_status()
with open(sys.argv[2], "wb") as f:
    for part in r.iter_content(65536):
        f.write(part)
`

func TestClients(t *testing.T) {
	r := start(t, quick())
	o := r.object(5_000_000)
	url := r.nginx.NamedURL(o)
	viaEnv := func(r *rig, argv ...string) { // env(1), as the client command has an environment of its own
		r.Helper()
		r.ok(r.client("env", append([]string{"http_proxy=" + proxyURL}, argv...)...))
	}
	t.Run("wget", func(t *testing.T) {
		need(t, "wget", "wget")
		r := r.on(t)
		file := r.file()
		r.overBoth(func() { viaEnv(r, "wget", "-q", "-O", file, url) })
		r.isObject(r.read(file), o)
		if err := os.Truncate(file, 1_000_000); err != nil {
			t.Fatal(err)
		}
		viaEnv(r, "wget", "-q", "--continue", "-O", file, url)
		r.isObject(r.read(file), o)
	})
	t.Run("requests", func(t *testing.T) {
		need(t, python, "python3")
		if exec.Command(python, "-c", "import requests").Run() != nil {
			t.Skip("requests is not installed: apt-get install python3-requests")
		}
		r := r.on(t)
		file := r.file()
		r.overBoth(func() { viaEnv(r, python, "-c", pythonGet, url, file) })
		r.isObject(r.read(file), o)
	})
	t.Run("apt", func(t *testing.T) {
		need(t, "apt-get", "apt")
		need(t, "dpkg-deb", "dpkg")
		r := r.on(t)
		deb := makeRepository(r)
		dir := r.file()
		conf := makeApt(r, dir)
		apt := func(args ...string) {
			r.Helper()
			cmd := r.lab.Client(r.ctx, "apt-get", append([]string{"-q", "-c", conf}, args...)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				r.Fatalf("apt-get %v: %v\n%s", args, err, out)
			}
		}
		apt("update")
		r.overBoth(func() { apt("download", "tributary-e2e") })
		got, err := filepath.Glob(filepath.Join(dir, "*.deb"))
		if err != nil || len(got) != 1 {
			t.Fatalf("downloaded %v, %v", got, err)
		}
		if sha256.Sum256(r.read(got[0])) != sha256.Sum256(deb) {
			t.Error("wrong bytes")
		}
	})
}

const control = `Package: tributary-e2e
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: 3 MB of nothing
`

// makeRepository puts an apt repository with one package among nginx's objects and returns the package.
func makeRepository(r *rig) []byte {
	r.Helper()
	repo, tree := filepath.Join(r.nginx.Root(), "repo"), r.file()
	deb := filepath.Join(repo, "tributary-e2e_1_all.deb")
	for _, dir := range []string{repo, filepath.Join(tree, "DEBIAN")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			r.Fatal(err)
		}
	}
	content, err := io.ReadAll(lab.Content(3_000_000))
	if err != nil {
		r.Fatal(err)
	}
	r.write(filepath.Join(tree, "DEBIAN", "control"), []byte(control))
	r.write(filepath.Join(tree, "content"), content)
	if out, err := exec.Command("dpkg-deb", "--build", "-Znone", tree, deb).CombinedOutput(); err != nil {
		r.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	built := r.read(deb)
	r.write(filepath.Join(repo, "Packages"), fmt.Appendf(nil, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n",
		control, filepath.Base(deb), len(built), sha256.Sum256(built)))
	return built
}

// makeApt writes a configuration of apt that knows the repository and the proxy, and keeps its hands off the system's.
func makeApt(r *rig, dir string) (conf string) {
	r.Helper()
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			r.Fatal(err)
		}
	}
	r.write(filepath.Join(dir, "status"), nil)
	r.write(filepath.Join(dir, "sources.list"), []byte("deb [trusted=yes] http://"+lab.OriginName+"/repo ./\n"))
	conf = filepath.Join(dir, "apt.conf")
	r.write(conf, fmt.Appendf(nil, `
Dir::Etc::sourcelist %[1]q;
Dir::Etc::sourceparts "/dev/null";
Dir::State::status %[2]q;
Dir::State::lists %[3]q;
Dir::Cache %[4]q;
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::http::Proxy %[5]q;
`, filepath.Join(dir, "sources.list"), filepath.Join(dir, "status"), filepath.Join(dir, "lists"),
		filepath.Join(dir, "cache"), proxyURL))
	return conf
}

func (r *rig) write(path string, text []byte) {
	r.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		r.Fatal(err)
	}
}
