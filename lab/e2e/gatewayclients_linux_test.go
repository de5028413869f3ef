package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// folder makes a folder for a test's files.
func (r *rig) folder() string { return filepath.Dir(r.file()) }

func (r *rig) mkdir(parts ...string) string {
	r.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	return dir
}

// uses runs "tributary use" three times: it must change something, then nothing, then undo the change. do runs before the
// undo.
func (r *rig) uses(file string, wrap func(argv ...string) []string, do func(), args ...string) {
	r.Helper()
	before, beforeErr := os.ReadFile(file)
	command := func(more ...string) string {
		r.Helper()
		argv := append([]string{"env", "XDG_RUNTIME_DIR=" + r.lab.Dir, "XDG_CONFIG_HOME=" + r.lab.Dir, "SHELL=/bin/sh", r.options.Binary, "use", "--force"}, append(args, more...)...)
		argv = wrap(argv...)
		return string(r.ok(r.client(argv[0], argv[1:]...)).body)
	}
	if said := command(); !strings.Contains(said, "test download through the gateway: ") || !strings.Contains(said, gatewayAddr) {
		r.Errorf("use %v: %s", args, said)
	}
	if said := command(); said != "unchanged\n" {
		r.Errorf("use %v, again: %s", args, said)
	}
	do()
	command("--undo")
	after, afterErr := os.ReadFile(file)
	if !bytes.Equal(before, after) || (beforeErr == nil) != (afterErr == nil) {
		r.Errorf("use %v --undo left %q of %q", args, after, before)
	}
}

// plain returns a command line unchanged.
func plain(argv ...string) []string { return argv }

// wheel returns a Python package that contains an object.
func (r *rig) wheel() []byte {
	r.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range []struct{ name, text string }{
		{"tributary_big/data", string(r.content(gatewaySize))},
		{"tributary_big-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tributary-big\nVersion: 1\n"},
		{"tributary_big-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"tributary_big-1.dist-info/RECORD", ""},
	} {
		part, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
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
	return b.Bytes()
}

// pipByGateway downloads a wheel from a host other than the index.
func (r *rig) pipByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	if exec.Command(python, "-m", "pip", "--version").Run() != nil {
		r.Skip("pip is not installed: apt-get install python3-pip")
	}
	const name = "tributary_big-1-py3-none-any.whl"
	wheel := r.wheel()
	r.write(filepath.Join(r.mkdir(r.nginx.Root(), "wheels"), name), wheel)
	r.write(filepath.Join(r.mkdir(r.nginx.Root(), "simple", "tributary-big"), "index.html"), fmt.Appendf(nil,
		"<!DOCTYPE html><a href=%q>%s</a>", "https://"+cdnName+"/wheels/"+name+"#sha256="+sum(wheel), name))
	r.write(filepath.Join(r.mkdir(r.nginx.Root(), "simple", "pip"), "index.html"), []byte("<!DOCTYPE html>"))
	conf := filepath.Join(r.mkdir(r.lab.Dir, "pip"), "pip.conf")
	r.write(conf, []byte("# mine\r\n[global]\r\ntimeout = 60\r\n[download]\r\nprogress-bar = off"))
	pip := func(r *rig) (ran, []byte) {
		r.Helper()
		dir := r.folder()
		c := r.client("env", "-u", "PIP_FIND_LINKS", "-u", "PIP_CERT", "-u", "PIP_INDEX_URL", "XDG_CONFIG_HOME="+r.lab.Dir, python, "-m", "pip", "download", "--quiet",
			"--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--retries", "0", "--dest", dir, "tributary-big")
		b, _ := os.ReadFile(filepath.Join(dir, name))
		return c, b
	}
	r.uses(conf, plain, func() {
		r.measured("pip", limit, func() {
			c, got := pip(r)
			if r.ok(c); !bytes.Equal(got, wheel) {
				r.Error("wrong bytes")
			}
		})
	}, "pip", "--upstream", "https://"+indexName+"/simple")
	return func(r *rig) {
		r.write(conf, []byte("[global]\nindex-url = "+gatewayURL+"/simple/"+indexName+"/simple/\n"))
		if c, _ := pip(r); c.failed == nil || !strings.Contains(c.said, "ERROR: ") {
			r.Errorf("%v: %s", c.failed, c.said)
		}
	}
}

const goMod = "module " + indexName + "/big\n"

// goByGateway downloads a module, which go checks against go.sum.
func (r *rig) goByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	at := r.mkdir(r.nginx.Root(), "goproxy", indexName, "big", "@v")
	module := indexName + "/big@v1.0.0"
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	lines := ""
	for _, f := range []struct{ name, text string }{{"big.bin", string(r.content(gatewaySize))}, {"go.mod", goMod}} {
		part, err := w.CreateHeader(&zip.FileHeader{Name: module + "/" + f.name, Method: zip.Store})
		if err == nil {
			_, err = part.Write([]byte(f.text))
		}
		if err != nil {
			r.Fatal(err)
		}
		lines += fmt.Sprintf("%s  %s/%s\n", sum([]byte(f.text)), module, f.name)
	}
	if err := w.Close(); err != nil {
		r.Fatal(err)
	}
	r.write(filepath.Join(at, "v1.0.0.zip"), b.Bytes())
	r.write(filepath.Join(at, "v1.0.0.mod"), []byte(goMod))
	r.write(filepath.Join(at, "v1.0.0.info"), []byte(`{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}`))
	r.write(filepath.Join(at, "list"), []byte("v1.0.0\n"))
	h1 := func(lines string) string {
		s := sha256.Sum256([]byte(lines))
		return "h1:" + base64.StdEncoding.EncodeToString(s[:])
	}
	dir := r.folder()
	r.write(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26\n\nrequire "+strings.Replace(module, "@", " ", 1)+"\n"))
	goSum := strings.Replace(module, "@", " ", 1) + " " + h1(lines) + "\n" +
		strings.Replace(module, "@", " ", 1) + "/go.mod " + h1(fmt.Sprintf("%s  go.mod\n", sum([]byte(goMod)))) + "\n"
	r.write(filepath.Join(dir, "go.sum"), []byte(goSum))
	download := func(r *rig, more ...string) ran {
		r.Helper()
		cache := r.folder()
		argv := append([]string{
			"-u", "GOPROXY", "-u", "GOFLAGS", "-C", dir, "XDG_CONFIG_HOME=" + r.lab.Dir, "GOMODCACHE=" + cache, "GOTOOLCHAIN=local", "GONOSUMDB=*",
		}, more...)
		c := r.client("env", append(argv, "go", "mod", "download", "-modcacherw")...)
		if c.failed == nil && !bytes.Equal(r.read(filepath.Join(cache, module, "big.bin")), r.content(gatewaySize)) {
			r.Error("wrong bytes")
		}
		if got := string(r.read(filepath.Join(dir, "go.sum"))); got != goSum {
			r.Errorf("go.sum is now %q", got)
		}
		return c
	}
	r.uses(filepath.Join(r.lab.Dir, "go", "env"), plain, func() {
		r.measured("go", limit, func() { r.ok(download(r)) })
	}, "go", "--upstream", "https://"+indexName+"/goproxy")
	return func(r *rig) { // go asks the module proxy directly
		cert, err := r.lab.Certificate()
		if err != nil {
			r.Fatal(err)
		}
		proxy := gatewayURL + "/https/" + indexName + "/goproxy|https://" + indexName + "/goproxy,direct"
		r.ok(download(r, "GOPROXY="+proxy, "SSL_CERT_FILE="+cert.CA))
	}
}

// aptByGateway downloads a package whose digest is in the list of packages.
func (r *rig) aptByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	need(r.T, "dpkg-deb", "dpkg")
	repo, tree := r.mkdir(r.nginx.Root(), "bigrepo"), r.folder()
	deb := filepath.Join(repo, "tributary-big_1_all.deb")
	r.mkdir(tree, "DEBIAN")
	about := strings.Replace(control, "tributary-e2e", "tributary-big", 1)
	r.write(filepath.Join(tree, "DEBIAN", "control"), []byte(about))
	r.write(filepath.Join(tree, "content"), r.content(gatewaySize))
	r.local("dpkg-deb", "--build", "-Znone", tree, deb)
	built := r.read(deb)
	r.write(filepath.Join(repo, "Packages"), fmt.Appendf(nil, "%sFilename: ./%s\nSize: %d\nSHA256: %s\n\n", about, filepath.Base(deb), len(built), sum(built)))
	etc := r.folder()
	r.local("cp", "-a", "/etc/apt/.", etc)
	r.local("sh", "-c", "rm -rf "+etc+"/sources.list.d/* "+etc+"/apt.conf.d/*proxy*")
	sources := filepath.Join(etc, "sources.list")
	r.write(sources, []byte("# mine\ndeb [trusted=yes] https://"+indexName+"/bigrepo ./ # too\n"))
	// A proxy for http must not be asked for the gateway.
	r.write(filepath.Join(r.mkdir(etc, "apt.conf.d"), "80mine"), []byte(`Acquire::http::Proxy "http://`+netlab.ProxyAddr+`";`+"\n"))
	wrap := func(argv ...string) []string { return r.mounted(etc, "/etc/apt", argv...) }
	apt := func(r *rig) (ran, []byte) {
		r.Helper()
		dir := r.folder()
		r.mkdir(dir, "lists", "partial")
		r.mkdir(dir, "cache", "archives", "partial")
		r.write(filepath.Join(dir, "status"), nil)
		line := []string{
			"env", "-C", dir, "apt-get", "-q", "-o", "Dir::State::status=" + dir + "/status", "-o", "Dir::State::lists=" + dir + "/lists", "-o", "Dir::Cache=" + dir + "/cache",
			"-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none", "-o", "Acquire::Retries=0",
		}
		argv := wrap("sh", "-c", strings.Join(line, " ")+" update && "+strings.Join(line, " ")+" download tributary-big")
		c := r.client(argv[0], argv[1:]...)
		b, _ := os.ReadFile(filepath.Join(dir, filepath.Base(deb)))
		return c, b
	}
	r.uses(sources, wrap, func() {
		r.measured("apt", limit, func() {
			c, got := apt(r)
			if r.ok(c); !bytes.Equal(got, built) {
				r.Error("wrong bytes")
			}
		})
	}, "apt")
	return func(r *rig) {
		r.write(sources, []byte("deb [trusted=yes] "+gatewayURL+"/https/"+indexName+"/bigrepo ./\n"))
		r.write(filepath.Join(etc, "apt.conf.d", "80mine"), nil)
		if c, _ := apt(r); c.failed == nil || !strings.Contains(c.said+string(c.body), "onnection refused") {
			r.Errorf("%v: %s %s", c.failed, c.said, c.body)
		}
	}
}

// dnfByGateway downloads a package whose digest is in the repository's metadata.
func (r *rig) dnfByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	need(r.T, "createrepo_c", "createrepo-c")
	need(r.T, "rpmbuild", "rpm")
	repo, dir := r.mkdir(r.nginx.Root(), "rpms"), r.folder()
	big, spec := filepath.Join(dir, "big"), filepath.Join(dir, "big.spec")
	r.write(big, r.content(gatewaySize))
	r.write(spec, fmt.Appendf(nil, "Name: tributary-big\nVersion: 1\nRelease: 1\nSummary: Big\nLicense: none\nBuildArch: noarch\n%%description\nBig.\n"+
		"%%install\ninstall -D -m 644 %s %%{buildroot}/opt/tributary-big\n%%files\n/opt/tributary-big\n", big))
	// w.ufdio: not compressed
	r.local("rpmbuild", "-bb", "--quiet", "--define", "_topdir "+dir, "--define", "_rpmdir "+repo, "--define", "_binary_payload w.ufdio", spec)
	const name = "tributary-big-1-1.noarch.rpm"
	built := r.read(filepath.Join(repo, "noarch", name))
	r.local("createrepo_c", "--quiet", "--checksum", "sha256", repo)
	repos := r.folder()
	conf := filepath.Join(repos, "lab.repo")
	text := "# mine\r\n[lab]\r\nname = The lab\r\ngpgcheck = 0\r\nbaseurl = https://" + indexName + "/rpms\r\n"
	r.write(conf, []byte(text))
	wrap := func(argv ...string) []string { return r.mounted(repos, "/etc/yum.repos.d", argv...) }
	dnf := func(r *rig, more ...string) (ran, []byte) {
		r.Helper()
		dir := r.folder()
		argv := wrap(append([]string{
			"dnf", "-y", "--installroot", r.mkdir(dir, "root"), "--releasever", "1", "--setopt", "cachedir=" + dir + "/cache",
			"--setopt", "logdir=" + dir, "install", "--downloadonly", "--downloaddir", dir, "tributary-big",
		}, more...)...)
		c := r.client(argv[0], argv[1:]...)
		b, _ := os.ReadFile(filepath.Join(dir, name))
		return c, b
	}
	var settings []byte
	r.uses(conf, wrap, func() {
		settings = r.read(conf)
		r.measured("dnf", limit, func() {
			c, got := dnf(r)
			if r.ok(c); !bytes.Equal(got, built) {
				r.Error("wrong bytes")
			}
		})
	}, "dnf")
	return func(r *rig) {
		r.write(conf, settings)
		if c, _ := dnf(r); c.failed == nil || !strings.Contains(c.said, "Couldn't connect to server for "+gatewayURL) {
			r.Errorf("%v: %s %s", c.failed, c.said, c.body)
		}
		// A baseurl that was added later is tried next.
		cert, err := r.lab.Certificate()
		if err != nil {
			r.Fatal(err)
		}
		r.write(conf, fmt.Appendf(nil, "[lab]\nname = The lab\ngpgcheck = 0\nbaseurl = %s/https/%s/rpms https://%[2]s/rpms\n", gatewayURL, indexName))
		if c, got := dnf(r, "--setopt", "sslcacert="+cert.CA); c.failed != nil || !bytes.Equal(got, built) {
			r.Errorf("%v: %s", c.failed, c.said)
		}
	}
}

// exports returns the variables that a profile exports.
func (r *rig) exports(profile string) (vars []string) {
	r.Helper()
	for line := range strings.Lines(string(r.read(profile))) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
			vars = append(vars, v)
		}
	}
	return vars
}

// hubByGateway downloads a file that the hub keeps in Xet storage.
func (r *rig) hubByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	hf := func(r *rig, more ...string) (ran, []byte) {
		r.Helper()
		dir := r.folder()
		c := r.client("env", append(append([]string{"HF_HOME=" + dir, "HF_HUB_DISABLE_TELEMETRY=1"}, more...),
			"hf", "download", "lab/big", "model.bin", "--local-dir", dir)...)
		b, _ := os.ReadFile(filepath.Join(dir, "model.bin"))
		return c, b
	}
	profile := filepath.Join(r.lab.Dir, ".profile")
	var vars []string
	r.uses(profile, plain, func() {
		vars = r.exports(profile)
		r.measured("hf", limit, func() {
			c, got := hf(r, vars...)
			if r.ok(c); !bytes.Equal(got, r.content(gatewaySize)) {
				r.Error("wrong bytes")
			}
		})
	}, "hf", "--upstream", "https://"+hubName)
	return func(r *rig) {
		if c, _ := hf(r, vars...); c.failed == nil {
			r.Error("it downloads without the gateway")
		}
	}
}

// startRegistry starts Debian's registry, behind nginx, for the duration of the test.
func (r *rig) startRegistry() {
	r.Helper()
	dir := r.folder()
	conf := filepath.Join(dir, "registry.yml")
	r.write(conf, fmt.Appendf(nil, "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: \"127.0.0.1:%d\"}\n",
		r.mkdir(dir, "data"), registryPort))
	registry := r.lab.Server(r.ctx, "docker-registry", "serve", conf)
	if err := registry.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = registry.Cancel(); _ = registry.Wait() })
}

// image puts an image with one layer into Debian's registry.
func (r *rig) image(name string) (layer []byte) {
	r.Helper()
	dir := r.folder()
	blobs := r.mkdir(dir, "oci", "blobs", "sha256")
	blob := func(content []byte) map[string]any {
		r.write(filepath.Join(blobs, sum(content)), content)
		return map[string]any{"digest": "sha256:" + sum(content), "size": len(content)}
	}
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			r.Fatal(err)
		}
		return b
	}
	typed := func(kind string, m map[string]any) map[string]any {
		m["mediaType"] = "application/vnd.oci.image." + kind
		return m
	}
	var unpacked, packed bytes.Buffer
	w := tar.NewWriter(&unpacked)
	content := r.content(gatewaySize)
	err := w.WriteHeader(&tar.Header{Name: "big", Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	z, zErr := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil || zErr != nil {
		r.Fatal(err, zErr)
	}
	if _, err := io.Copy(z, bytes.NewReader(unpacked.Bytes())); err != nil {
		r.Fatal(err)
	}
	if err := z.Close(); err != nil {
		r.Fatal(err)
	}
	config := encode(map[string]any{"architecture": "amd64", "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(unpacked.Bytes())}}})
	manifest := encode(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": typed("config.v1+json", blob(config)), "layers": []any{typed("layer.v1.tar+gzip", blob(packed.Bytes()))},
	})
	r.write(filepath.Join(dir, "oci", "index.json"), encode(map[string]any{"schemaVersion": 2, "manifests": []any{typed("manifest.v1+json", blob(manifest))}}))
	r.write(filepath.Join(dir, "oci", "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`))
	push := r.lab.Server(r.ctx, "skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", "--retry-times", "10",
		"oci:"+filepath.Join(dir, "oci"), fmt.Sprintf("docker://127.0.0.1:%d/%s:1", registryPort, name))
	if out, err := push.CombinedOutput(); err != nil {
		r.Fatalf("push: %v\n%s", err, out)
	}
	return packed.Bytes()
}

// imagesByGateway pulls an image whose layer is named by its digest.
func (r *rig) imagesByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	need(r.T, "docker-registry", "docker-registry")
	layer := r.image("lab/big")
	etc := r.folder()
	r.local("cp", "-a", "/etc/containers/.", etc)
	wrap := func(argv ...string) []string { return r.mounted(etc, "/etc/containers", argv...) }
	const image = "docker://" + registryName + "/lab/big:1"
	own := filepath.Join(etc, "registries.conf.d", "990-tributary.conf")
	skopeo := func(r *rig, vars ...string) (ran, []byte) {
		r.Helper()
		dir := r.folder()
		argv := wrap(append(append([]string{"env"}, vars...), "skopeo", "--insecure-policy", "copy", image, "dir:"+dir)...)
		c := r.client(argv[0], argv[1:]...)
		b, _ := os.ReadFile(filepath.Join(dir, sum(layer)))
		return c, b
	}
	var settings []byte
	r.uses(own, wrap, func() {
		settings = r.read(own)
		r.measured("skopeo", limit, func() {
			c, got := skopeo(r)
			if r.ok(c); !bytes.Equal(got, layer) {
				r.Error("wrong bytes")
			}
		})
		if _, err := exec.LookPath("podman"); err != nil {
			r.Log("podman is not installed: apt-get install podman")
			return
		}
		r.measured("podman", limit, func() {
			store := r.folder()
			argv := wrap("podman", "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
				"pull", "--quiet", strings.TrimPrefix(image, "docker://"))
			r.ok(r.client(argv[0], argv[1:]...))
			found, err := filepath.Glob(filepath.Join(store, "root", "vfs", "dir", "*", "big"))
			if err != nil || len(found) != 1 || !bytes.Equal(r.read(found[0]), r.content(gatewaySize)) {
				r.Errorf("unpacked %v, %v", found, err)
			}
		})
	}, "podman", "--upstream", registryName)
	return func(r *rig) { // it asks the registry itself
		r.write(own, settings)
		cert, err := r.lab.Certificate()
		if err != nil {
			r.Fatal(err)
		}
		if c, got := skopeo(r, "SSL_CERT_FILE="+cert.CA); c.failed != nil || !bytes.Equal(got, layer) {
			r.Errorf("%v: %s", c.failed, c.said)
		}
	}
}

// dockerByGateway pulls with Docker's daemon, which uses mirrors only for Docker's own registry, and with containerd.
func (r *rig) dockerByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	need(r.T, "docker-registry", "docker-registry")
	need(r.T, "skopeo", "skopeo")
	layer := r.image("library/big")
	etc, certs := r.folder(), r.folder()
	r.write(filepath.Join(etc, "daemon.json"), []byte("{\n    \"debug\": false\n}"))
	wrap := func(argv ...string) []string { return r.mounted(etc, "/etc/docker", argv...) }
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	// run starts the daemon, calls do with the command lines of its clients, and ends the daemon.
	run := func(r *rig, do func(docker, ctr []string)) {
		r.Helper()
		dir := r.folder()
		sock, containerd := "unix://"+dir+"/sock", dir+"/exec/containerd/containerd.sock"
		// "ip netns exec" hides the control groups, which the daemon needs, behind a new /sys.
		hosts := filepath.Join("/etc/netns", r.lab.ClientName(), "hosts")
		argv := r.mounted(hosts, "/etc/hosts", append([]string{"nsenter", "--net=/run/netns/" + r.lab.ClientName()}, wrap("env", "SSL_CERT_FILE="+cert.CA, "dockerd", "--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "--host", sock,
			"--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs")...)...)
		daemon := exec.CommandContext(r.ctx, argv[0], argv[1:]...)
		var said bytes.Buffer
		daemon.Stderr = &said
		if err := daemon.Start(); err != nil {
			r.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = daemon.Wait(); close(ended) }()
		defer func() {
			_ = unix.Kill(daemon.Process.Pid, unix.SIGTERM) // the daemon ends containerd
			<-ended
			if r.Failed() {
				r.Logf("dockerd said:\n%s", said.Bytes()[max(0, said.Len()-3000):])
			}
		}()
		docker := []string{"/usr/bin/docker", "--config", dir, "--host", sock}
		r.until("docker answers", func() bool {
			select {
			case <-ended:
				r.Skipf("dockerd does not run here: %s", said.Bytes()[max(0, said.Len()-500):])
			default:
			}
			return r.client(docker[0], append(docker[1:], "version")...).failed == nil
		})
		do(docker, append(r.mounted(certs, "/etc/containerd"), "ctr", "--address", containerd))
	}
	pull := func(r *rig, docker []string) ran {
		r.Helper()
		return r.client(docker[0], append(docker[1:], "pull", "--quiet", "big:1")...)
	}
	var settings []byte
	r.uses(filepath.Join(etc, "daemon.json"), wrap, func() {
		settings = r.read(filepath.Join(etc, "daemon.json"))
		run(r, func(docker, ctr []string) {
			r.measured("docker", limit, func() { r.ok(pull(r, docker)) })
			file := r.file()
			r.ok(r.client(docker[0], append(docker[1:], "save", "--output", file, "big:1")...))
			if !bytes.Contains(r.read(file), r.content(gatewaySize)) {
				r.Error("docker: wrong bytes")
			}
			wrapped := func(argv ...string) []string { return r.mounted(certs, "/etc/containerd", argv...) }
			r.uses(filepath.Join(certs, "certs.d", registryName, "hosts.toml"), wrapped, func() {
				r.measured("containerd", limit, func() {
					r.ok(r.client(ctr[0], append(ctr[1:], "content", "fetch", "--hosts-dir", "/etc/containerd/certs.d", registryName+"/library/big:1")...))
				})
				c := r.ok(r.client(ctr[0], append(ctr[1:], "content", "get", "sha256:"+sum(layer))...))
				if !bytes.Equal(c.body, layer) {
					r.Error("containerd: wrong bytes")
				}
			}, "containerd", "--upstream", registryName)
		})
	}, "docker")
	return func(r *rig) { // it asks the registry itself
		r.write(filepath.Join(etc, "daemon.json"), settings)
		run(r, func(docker, _ []string) { r.ok(pull(r, docker)) })
	}
}

// nixByGateway realises a path from a signed cache.
func (r *rig) nixByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	dir := r.folder()
	big := filepath.Join(dir, "big")
	r.write(big, r.content(gatewaySize))
	conf := r.mkdir(dir, "etc")
	nix := func(store string, argv ...string) []string {
		return append([]string{"env", "NIX_REMOTE=local?root=" + store, "NIX_CONF_DIR=" + conf, "XDG_CACHE_HOME=" + r.folder()}, argv...)
	}
	run := func(argv []string) string {
		r.Helper()
		return strings.TrimSpace(r.local(argv[0], argv[1:]...))
	}
	first := r.mkdir(dir, "first")
	run(nix(first, "nix-store", "--generate-binary-cache-key", "lab-1", dir+"/key", dir+"/key.pub"))
	path := run(nix(first, "nix-store", "--add-fixed", "sha256", big))
	path = path[strings.LastIndexByte(path, '\n')+1:]
	// not content-addressed as far as the signature is concerned: the narinfo must be signed
	run(nix(first, "nix", "--extra-experimental-features", "nix-command", "copy", "--to",
		"file://"+r.mkdir(r.nginx.Root(), "nixcache")+"?compression=none&secret-key="+dir+"/key", path))
	r.write(filepath.Join(conf, "nix.conf"), fmt.Appendf(nil, "trusted-public-keys = %s\nsandbox = false\nbuild-users-group =\n", r.read(dir+"/key.pub")))
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	realise := func(r *rig) (ran, []byte) {
		r.Helper()
		store := r.folder()
		argv := nix(store, "NIX_SSL_CERT_FILE="+cert.CA, "nix-store", "--realise", path)
		c := r.client(argv[0], argv[1:]...)
		b, _ := os.ReadFile(filepath.Join(store, path))
		return c, b
	}
	wrap := func(argv ...string) []string { return r.mounted(conf, "/etc/nix", argv...) }
	var settings []byte
	r.uses(filepath.Join(conf, "nix.conf"), wrap, func() {
		settings = r.read(filepath.Join(conf, "nix.conf"))
		r.measured("nix", limit, func() {
			c, got := realise(r)
			if r.ok(c); !bytes.Equal(got, r.content(gatewaySize)) {
				r.Error("wrong bytes")
			}
		})
	}, "nix", "--upstream", "https://"+indexName+"/nixcache")
	return func(r *rig) { // it asks the cache itself
		r.write(filepath.Join(conf, "nix.conf"), settings)
		if c, got := realise(r); c.failed != nil || !bytes.Equal(got, r.content(gatewaySize)) {
			r.Errorf("%v: %s", c.failed, c.said)
		}
	}
}
