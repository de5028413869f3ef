package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// offer makes a file of the origin, and returns its https URL.
func (r *rig) offer(path string, text []byte) (url string) {
	r.Helper()
	full := filepath.Join(r.nginx.Root(), path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.Fatal(err)
	}
	r.write(full, text)
	return "https://" + netlab.OriginName + "/" + path
}

// archive returns a gzipped tar of files.
func (r *rig) archive(files map[string]string) []byte {
	r.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		r.Fatal(err)
	}
	w := tar.NewWriter(z)
	for name, text := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		r.Fatal(err)
	}
	if err := z.Close(); err != nil {
		r.Fatal(err)
	}
	return b.Bytes()
}

// divided waits for the end of a command that must use both links, without a tunnel.
func (f *running) divided() {
	f.Helper()
	f.ended(0, "wifi ", "lte ")
	if said := f.said.String(); strings.Contains(said, "over one link") {
		f.Errorf("it was not opened: %s", said)
	}
}

const httpxGet = `
import sys, httpx
with httpx.stream("GET", sys.argv[1]) as r, open(sys.argv[2], "wb") as f:
    r.raise_for_status()
    for part in r.iter_raw():
        f.write(part)
`

const boto3Get = `
import sys, boto3, botocore
s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1",
    config=botocore.client.Config(signature_version=botocore.UNSIGNED, s3={"addressing_style": "path"}))
s3.download_file("bucket", "key", sys.argv[2])
`

// TestRunClients: programs work under `tributary run` without settings of their own, and their downloads use both links.
func TestRunClients(t *testing.T) {
	if !matrix() {
		t.Skip("make matrix runs it")
	}
	r := newRig(t, quick(), netlab.NginxOptions{Directives: "charset_types text/html; types { text/html html; application/json json; }"})
	content := r.content(5_000_000)
	origin := "https://" + netlab.OriginName
	url := r.offer("video.mp4", content)
	r.offer("bucket/key", content)
	ytdlp, _ := exec.LookPath("yt-dlp")
	venv := filepath.Join(filepath.Dir(ytdlp), "python3") // with the packages that tools/matrix.sh installs
	fetches := func(name string, argv ...string) {        // a program that writes the object to a file
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(argv[0]); err != nil {
				t.Skipf("%s is not installed", argv[0])
			}
			r := r.on(t)
			file := r.file()
			for i, a := range argv {
				argv[i] = strings.NewReplacer("FILE", file, "URL", url).Replace(a)
			}
			r.run(argv...).divided()
			if !bytes.Equal(r.read(file), content) {
				t.Error("wrong bytes")
			}
		})
	}
	fetches("curl", "curl", "-sS", "--fail", "-o", "FILE", "URL")
	fetches("wget", "wget", "-q", "-O", "FILE", "URL")
	fetches("Python requests, Debian", python, "-c", pythonGet, "URL", "FILE")
	fetches("yt-dlp", "yt-dlp", "--no-config", "--compat-options", "no-certifi", "--quiet", "-o", "FILE", "URL")
	if ytdlp != "" {
		fetches("Python requests", venv, "-c", pythonGet, "URL", "FILE")
		fetches("httpx", venv, "-c", httpxGet, "URL", "FILE")
		fetches("boto3", venv, "-c", boto3Get, origin, "FILE")
	}
	fetches("aws", "aws", "--region", "us-east-1", "--endpoint-url", origin, "--no-sign-request", "s3", "cp", "--quiet", "s3://bucket/key", "FILE")
	fetches("Go", r.goProgram("goget"), "URL", "FILE")
	if exec.Command("node", "-e", "process.exit(parseInt(process.versions.node) < 24 ? 1 : 0)").Run() == nil {
		fetches("Node fetch", "node", "-e", nodeFetch, "URL", "FILE")
		fetches("Node https.get", "node", "-e", strings.Replace(nodeFetch, "fetch(url).then((res) => stream.Readable.fromWeb(res.body)", `require("https").get(url, (res) => res`, 1), "URL", "FILE")
	}

	t.Run("git", func(t *testing.T) {
		need(t, "git", "git")
		r := r.on(t)
		r.offerGit(content)
		clone := filepath.Join(filepath.Dir(r.file()), "clone")
		r.run("git", "clone", "-q", origin+"/dumb.git", clone).divided()
		r.local("git", "-C", clone, "fsck", "--strict")
		if !bytes.Equal(r.read(filepath.Join(clone, "data")), content) {
			t.Error("wrong bytes")
		}
	})

	wheelName, wheel := r.offerWheel(content)
	for name, pip := range map[string]string{"pip, Debian": python, "pip": venv} {
		t.Run(name, func(t *testing.T) {
			if exec.Command(pip, "-m", "pip", "--version").Run() != nil {
				t.Skip("pip is not installed")
			}
			r := r.on(t)
			dir := filepath.Dir(r.file())
			r.run(pip, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--disable-pip-version-check",
				"--index-url", origin+"/simple/", "--dest", dir, "tributary-e2e").divided()
			if !bytes.Equal(r.read(filepath.Join(dir, wheelName)), wheel) {
				t.Error("wrong bytes")
			}
		})
	}
	t.Run("uv", func(t *testing.T) {
		need(t, "uv", "python3-venv, or make matrix")
		r := r.on(t)
		dir := filepath.Dir(r.file())
		r.run("uv", "pip", "install", "-q", "--no-cache", "--no-deps", "--python", python, "--target", dir, "--index-url", origin+"/simple/", "tributary-e2e").divided()
		if !bytes.Equal(r.read(filepath.Join(dir, "tributary_e2e", "data")), content) {
			t.Error("wrong bytes")
		}
	})
	t.Run("npm", func(t *testing.T) {
		need(t, "npm", "npm")
		r := r.on(t)
		r.offerNPM(content)
		dir := filepath.Dir(r.file())
		r.run("npm", "install", "--silent", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache"), "--prefix", dir, "--registry", origin+"/npm/", "tributary-e2e").divided()
		if !bytes.Equal(r.read(filepath.Join(dir, "node_modules", "tributary-e2e", "data")), content) {
			t.Error("wrong bytes")
		}
	})
	t.Run("cargo", func(t *testing.T) {
		need(t, "cargo", "cargo")
		r := r.on(t)
		const name, manifest = "tributary-e2e", "[package]\nname = \"tributary-e2e\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"
		crate := r.archive(map[string]string{name + "-1.0.0/Cargo.toml": manifest, name + "-1.0.0/src/lib.rs": "", name + "-1.0.0/data": string(content)})
		r.offer("crates/"+name+"-1.0.0.crate", crate)
		r.offer("index/config.json", fmt.Appendf(nil, `{"dl":"%s/crates/{crate}-{version}.crate"}`, origin))
		r.offer("index/tr/ib/"+name, fmt.Appendf(nil, `{"name":%q,"vers":"1.0.0","deps":[],"cksum":%q,"features":{},"yanked":false}`+"\n", name, sum(crate)))
		dir := filepath.Dir(r.file())
		if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
		r.write(filepath.Join(dir, "src", "lib.rs"), nil)
		r.write(filepath.Join(dir, "Cargo.toml"), []byte("[package]\nname = \"user\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\n"+name+" = { version = \"1\", registry = \"lab\" }\n"))
		home := filepath.Join(dir, "cargo")
		r.run("env", "RUSTUP_HOME="+cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(os.Getenv("HOME"), ".rustup")), "CARGO_HOME="+home, "CARGO_REGISTRIES_LAB_INDEX=sparse+"+origin+"/index/", "cargo", "fetch", "-q", "--manifest-path", filepath.Join(dir, "Cargo.toml")).divided()
		got, err := filepath.Glob(filepath.Join(home, "registry", "cache", "*", name+"-1.0.0.crate"))
		if err != nil || len(got) != 1 || !bytes.Equal(r.read(got[0]), crate) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("go mod download", func(t *testing.T) {
		r := r.on(t)
		var module bytes.Buffer
		w := zip.NewWriter(&module)
		for name, text := range map[string]string{"go.mod": "module example.test/m\n", "data": string(content)} {
			part, err := w.CreateHeader(&zip.FileHeader{Name: "example.test/m@v1.0.0/" + name})
			if err == nil {
				_, err = part.Write([]byte(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r.offer("go/example.test/m/@v/v1.0.0.info", []byte(`{"Version":"v1.0.0"}`))
		r.offer("go/example.test/m/@v/v1.0.0.mod", []byte("module example.test/m\n"))
		r.offer("go/example.test/m/@v/v1.0.0.zip", module.Bytes())
		dir := filepath.Dir(r.file())
		r.run("env", "GOPROXY="+origin+"/go", "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GOPATH="+dir, "go", "mod", "download", "example.test/m@v1.0.0").divided()
		if !bytes.Equal(r.read(filepath.Join(dir, "pkg", "mod", "example.test", "m@v1.0.0", "data")), content) {
			t.Error("wrong bytes")
		}
	})
	for _, user := range []string{"root", "_apt"} {
		t.Run("apt as "+user, func(t *testing.T) {
			need(t, "apt-get", "apt")
			need(t, "dpkg-deb", "dpkg")
			r := r.on(t)
			deb := makeRepository(r)
			dir, err := os.MkdirTemp("", "tributary-e2e-apt-") // where the other user has access
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			conf := makeApt(r, dir)
			r.write(filepath.Join(dir, "sources.list"), []byte("deb [trusted=yes] "+origin+"/repo ./\n"))
			text := strings.Replace(string(r.read(conf)), `User "root"`, `User "`+user+`"`, 1)
			r.write(conf, []byte(text[:strings.Index(text, "Acquire::http::Proxy")]))
			r.local("chown", "-R", user, dir)
			r.local("chmod", "755", dir)
			apt := func(args ...string) *running {
				r.Helper()
				return r.run(append([]string{"sh", "-c", `cd "$0"; exec apt-get "$@"`, dir, "-q", "-c", conf}, args...)...)
			}
			apt("update").ended(0)
			apt("download", "tributary-e2e").divided()
			got, err := filepath.Glob(filepath.Join(dir, "*.deb"))
			if err != nil || len(got) != 1 || !bytes.Equal(r.read(got[0]), deb) {
				t.Errorf("downloaded %v, %v", got, err)
			}
		})
	}
}

// goProgram builds a program of testdata and returns its path.
func (r *rig) goProgram(name string) string {
	r.Helper()
	path := filepath.Join(r.lab.Dir, name)
	if out, err := exec.Command("go", "build", "-o", path, "./testdata/"+name).CombinedOutput(); err != nil {
		r.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// zipped returns a zip archive of files, stored as they are.
func (r *rig) zipped(files ...[2]string) []byte {
	r.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		part, err := w.CreateHeader(&zip.FileHeader{Name: f[0]}) // stored
		if err == nil {
			_, err = part.Write([]byte(f[1]))
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

// offerWheel puts a simple index (PEP 503) with one wheel that contains content onto the origin.
func (r *rig) offerWheel(content []byte) (name string, wheel []byte) {
	r.Helper()
	wheel = r.zipped(
		[2]string{"tributary_e2e/data", string(content)},
		[2]string{"tributary_e2e-1.dist-info/METADATA", wheelMetadata},
		[2]string{
			"tributary_e2e-1.dist-info/WHEEL",
			"Wheel-Version: 1.0\nGenerator: e2e\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		},
		[2]string{
			"tributary_e2e-1.dist-info/RECORD",
			"tributary_e2e/data,,\ntributary_e2e-1.dist-info/METADATA,,\ntributary_e2e-1.dist-info/WHEEL,,\n" +
				"tributary_e2e-1.dist-info/RECORD,,\n",
		},
	)
	name = "tributary_e2e-1-py3-none-any.whl"
	r.offer("simple/tributary-e2e/"+name, wheel)
	r.offer("simple/tributary-e2e/index.html", fmt.Appendf(nil, "<!DOCTYPE html><a href=%q>%[1]s</a>", name+"#sha256="+sum(wheel)))
	return name, wheel
}

// offerNPM puts a registry with one package that contains content onto the origin.
func (r *rig) offerNPM(content []byte) {
	r.Helper()
	tarball := r.archive(map[string]string{"package/package.json": `{"name":"tributary-e2e","version":"1.0.0"}`, "package/data": string(content)})
	hash := sha512.Sum512(tarball)
	at := r.offer("npm/files/tributary-e2e-1.0.0.tgz", tarball)
	r.offer("npm/tributary-e2e", fmt.Appendf(nil, `{"name":"tributary-e2e","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tributary-e2e","version":"1.0.0",
		"dist":{"tarball":%q,"integrity":"sha512-%s"}}}}`, at, base64.StdEncoding.EncodeToString(hash[:])))
}

// offerGit puts a repository of git that a server of files can serve, with content in its file data, onto the origin.
func (r *rig) offerGit(content []byte) {
	r.Helper()
	bare, work := filepath.Join(r.nginx.Root(), "dumb.git"), filepath.Join(filepath.Dir(r.file()), "work")
	r.local("git", "init", "-q", "--bare", "-b", "main", bare)
	r.local("git", "init", "-q", "-b", "main", work)
	r.write(filepath.Join(work, "data"), content)
	r.commit(work, "data")
	r.local("git", "-C", work, "push", "-q", bare, "main")
	r.local("git", "-C", bare, "repack", "-q", "-a", "-d")
	r.local("git", "-C", bare, "update-server-info")
}
