package e2e

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tributary-http/tributary/lab/netlab"
)

// apt downloads a package from a repository of its own.
func (r *rig) apt() {
	r.Helper()
	need(r.T, "apt-get", "apt")
	need(r.T, "dpkg-deb", "dpkg")
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
		r.Fatalf("downloaded %v, %v", got, err)
	}
	if !bytes.Equal(r.read(got[0]), deb) {
		r.Error("wrong bytes")
	}
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
	r.write(filepath.Join(tree, "DEBIAN", "control"), []byte(control))
	r.write(filepath.Join(tree, "content"), r.content(3_000_000))
	if out, err := exec.Command("dpkg-deb", "--build", "-Znone", tree, deb).CombinedOutput(); err != nil {
		r.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	built := r.read(deb)
	r.write(filepath.Join(repo, "Packages"), fmt.Appendf(nil, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n",
		control, filepath.Base(deb), len(built), sha256.Sum256(built)))
	return built
}

// makeApt writes a configuration of apt that names the repository and the proxy, and does not touch the system's.
func makeApt(r *rig, dir string) (conf string) {
	r.Helper()
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			r.Fatal(err)
		}
	}
	r.write(filepath.Join(dir, "status"), nil)
	r.write(filepath.Join(dir, "sources.list"), []byte("deb [trusted=yes] http://"+netlab.OriginName+"/repo ./\n"))
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

const wheelMetadata = "Metadata-Version: 2.1\nName: tributary-e2e\nVersion: 1\n"

// pip downloads a wheel from a simple index (PEP 503).
func (r *rig) pip() {
	r.Helper()
	need(r.T, python, "python3")
	if exec.Command(python, "-m", "pip", "--version").Run() != nil {
		r.Skip("pip is not installed: apt-get install python3-pip")
	}
	const name = "tributary_e2e-1-py3-none-any.whl"
	var wheel bytes.Buffer
	w := zip.NewWriter(&wheel)
	for _, f := range []struct{ name, text string }{
		{"tributary_e2e/data", string(r.content(3_000_000))},
		{"tributary_e2e-1.dist-info/METADATA", wheelMetadata},
		{"tributary_e2e-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"tributary_e2e-1.dist-info/RECORD", ""},
	} {
		part, err := w.Create(f.name)
		if err == nil {
			_, err = part.Write([]byte(f.text))
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		r.Fatal(err)
	}
	index := filepath.Join(r.nginx.Root(), "simple", "tributary-e2e")
	if err := os.MkdirAll(index, 0o755); err != nil {
		r.Fatal(err)
	}
	r.write(filepath.Join(index, name), wheel.Bytes())
	r.write(filepath.Join(index, "index.html"), fmt.Appendf(nil,
		"<!DOCTYPE html><a href=%q>%[1]s</a>", name+"#sha256="+sum(wheel.Bytes())))
	get := func(proxy string) {
		r.Helper()
		dir := filepath.Dir(r.file())
		r.ok(r.viaEnv(proxy, python, "-m", "pip", "download", "--isolated", "--quiet", "--no-deps", "--no-cache-dir",
			"--disable-pip-version-check", "--index-url", "http://"+netlab.OriginName+"/simple/",
			"--trusted-host", netlab.OriginName, "--dest", dir, "tributary-e2e"))
		if !bytes.Equal(r.read(filepath.Join(dir, name)), wheel.Bytes()) {
			r.Errorf("proxy %q: wrong bytes", proxy)
		}
	}
	get("")
	r.overBoth(func() { get(proxyURL) })
}
