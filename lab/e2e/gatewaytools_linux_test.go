package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// condaVariable names the variable with a conda command. PyPI has no current conda, so it is not fetched.
const condaVariable = "TRIBUTARY_CONDA"

// channel makes a channel for conda with one package, and returns the name of the package's file and the package.
func (r *rig) channel() (name string, built []byte) {
	r.Helper()
	const stem = "tributary-big-1-0"
	content := r.content(gatewaySize)
	packed := func(files map[string]string) []byte {
		dir := r.folder()
		var b bytes.Buffer
		w := tar.NewWriter(&b)
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
		file := filepath.Join(dir, "tar")
		r.write(file, b.Bytes())
		r.local("zstd", "-q", "--fast", file)
		return r.read(file + ".zst")
	}
	const index = `"name": "tributary-big", "version": "1", "build": "0", "build_number": 0, "depends": [], "noarch": "generic", "subdir": "noarch"`
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range []struct {
		name string
		text []byte
	}{
		{"metadata.json", []byte(`{"conda_pkg_format_version": 2}`)},
		{"pkg-" + stem + ".tar.zst", packed(map[string]string{"big": string(content)})},
		{"info-" + stem + ".tar.zst", packed(map[string]string{
			"info/index.json": "{" + index + "}", "info/files": "big\n",
			"info/paths.json": fmt.Sprintf(`{"paths": [{"_path": "big", "path_type": "hardlink", "sha256": %q, "size_in_bytes": %d}], "paths_version": 1}`, sum(content), len(content)),
		})},
	} {
		part, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err == nil {
			_, err = part.Write(f.text)
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		r.Fatal(err)
	}
	for _, subdir := range []string{"noarch", "linux-64"} {
		at, packages := r.mkdir(r.nginx.Root(), "conda", "conda-forge", subdir), ""
		if subdir == "noarch" {
			r.write(filepath.Join(at, stem+".conda"), b.Bytes())
			packages = fmt.Sprintf(`"%s.conda": {%s, "size": %d, "sha256": %q}`, stem, index, b.Len(), sum(b.Bytes()))
		}
		file := filepath.Join(at, "repodata.json")
		r.write(file, fmt.Appendf(nil, `{"info": {"subdir": %q}, "packages": {}, "packages.conda": {%s}, "repodata_version": 1}`, subdir, packages))
		r.local("zstd", "-q", file)
	}
	return stem + ".conda", b.Bytes()
}

// usesConda downloads with a client of conda's channels, which checks the digest that the channel names, and then without
// the proxy.
func (r *rig) usesConda(what string, limit time.Duration, download func(r *rig) (c ran, right bool)) func(*rig) {
	r.Helper()
	conf := filepath.Join(r.lab.Dir, ".conda", "condarc.d", "tributary.yml")
	var settings []byte
	r.uses(conf, plain, func() {
		settings = r.read(conf)
		r.measured(what, limit, func() {
			if c, right := download(r); !right {
				r.ok(c)
				r.Errorf("wrong bytes: %s", c.said)
			}
		})
	}, "conda", "--upstream", "https://"+indexName+"/conda")
	return func(r *rig) {
		r.mkdir(filepath.Dir(conf))
		r.write(conf, settings)
		if c, _ := download(r); c.failed == nil || !strings.Contains(c.said, gatewayURL) {
			r.Errorf("%v: %s %s", c.failed, c.said, c.body)
		}
	}
}

func (r *rig) condaByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	conda := os.Getenv(condaVariable)
	if conda == "" {
		r.Skip(condaVariable + " names no conda command")
	}
	name, built := r.channel()
	return r.usesConda("conda", limit, func(r *rig) (ran, bool) {
		r.Helper()
		dir := r.folder()
		c := r.client("env", "-C", dir, "CONDA_PKGS_DIRS="+dir, conda, "create", "--yes", "--quiet", "--prefix", dir+"/env", "--override-channels", "--channel", "conda-forge",
			"--solver", "classic", "--download-only", "tributary-big")
		got, _ := os.ReadFile(filepath.Join(dir, name))
		return c, bytes.Equal(got, built)
	})
}

// rattlerInstall installs with rattler, whose code mamba and pixi use and which reads the alias from conda's settings.
const rattlerInstall = `
import asyncio, sys
from rattler import Channel, ChannelConfig, Gateway, install, solve
settings, at = sys.argv[1:]
alias, = [line.split()[1] for line in open(settings) if line.startswith("channel_alias:")]
async def main():
    records = await solve([Channel("conda-forge", ChannelConfig(alias + "/"))], ["tributary-big"], gateway=Gateway(at + "/repodata"))
    await install(records, at + "/env", at + "/pkgs", show_progress=False)
asyncio.run(main())
`

// pythonWith returns the first python3 in PATH that knows a module, or nothing.
func pythonWith(module string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if at := filepath.Join(dir, "python3"); exec.Command(at, "-c", "import "+module).Run() == nil {
			return at
		}
	}
	return ""
}

func (r *rig) rattlerByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	at := pythonWith("rattler")
	if at == "" {
		r.Skip("no python3 in PATH knows rattler: make matrix")
	}
	r.channel()
	return r.usesConda("py-rattler", limit, func(r *rig) (ran, bool) {
		r.Helper()
		dir := r.folder()
		c := r.client(at, "-c", rattlerInstall, filepath.Join(r.lab.Dir, ".conda", "condarc.d", "tributary.yml"), dir)
		got, _ := os.ReadFile(filepath.Join(dir, "env", "big"))
		return c, bytes.Equal(got, r.content(gatewaySize))
	})
}

// brewVariable names the variable with a folder of Homebrew's repository, in a version for Debian's Ruby (4.3.0 for 3.1).
// The folder is copied.
const brewVariable = "TRIBUTARY_BREW"

// brewByGateway fetches a bottle of a formula, as "brew install" does.
func (r *rig) brewByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	repository := os.Getenv(brewVariable)
	if repository == "" {
		r.Skip(brewVariable + " names no copy of Homebrew")
	}
	at := r.mkdir(r.nginx.Root(), "v2", "lab", "tap", "big")
	bottle := r.content(gatewaySize) // "brew fetch" does not open it
	r.write(filepath.Join(r.mkdir(at, "blobs"), "sha256:"+sum(bottle)), bottle)
	r.write(filepath.Join(r.mkdir(at, "manifests"), "1"), fmt.Appendf(nil, `{"schemaVersion": 2, "manifests": [{"annotations": {
		"org.opencontainers.image.ref.name": "1.x86_64_linux", "sh.brew.bottle.digest": %q, "sh.brew.tab": "{}"}}]}`, sum(bottle)))
	dir := r.folder()
	r.local("cp", "-a", filepath.Join(repository, "bin"), filepath.Join(repository, "Library"), dir)
	r.mkdir(dir, "Library", "Taps", "homebrew", "homebrew-core", "Formula") // else it is cloned
	formula, container := filepath.Join(dir, "big.rb"), filepath.Join(dir, "cgroup")
	r.write(formula, fmt.Appendf(nil, "class Big < Formula\n  url \"https://%s/big-1.tar.gz\"\n  sha256 %q\n  bottle do\n    root_url \"https://ghcr.io/v2/lab/tap\"\n"+
		"    sha256 cellar: :any_skip_relocation, x86_64_linux: %q\n  end\nend\n", indexName, sum(nil), sum(bottle)))
	r.write(container, []byte("0::/docker\n")) // Homebrew does not run as root elsewhere
	brew := func(r *rig) (ran, []byte) {
		r.Helper()
		cache := r.folder()
		argv := r.mounted(container, "/proc/1/cgroup", "env", "XDG_CONFIG_HOME="+r.lab.Dir, "HOMEBREW_CACHE="+cache, "HOMEBREW_DEVELOPER=1", "HOMEBREW_USE_RUBY_FROM_PATH=1",
			"HOMEBREW_NO_AUTO_UPDATE=1", "HOMEBREW_NO_INSTALL_FROM_API=1", "HOMEBREW_NO_ANALYTICS=1", filepath.Join(dir, "bin", "brew"), "fetch", "--force-bottle", formula)
		c := r.client(argv[0], argv[1:]...)
		found, _ := filepath.Glob(filepath.Join(cache, "downloads", "*--big--1.*.tar.gz"))
		if len(found) != 1 {
			return c, nil
		}
		return c, r.read(found[0])
	}
	conf := filepath.Join(r.lab.Dir, "homebrew", "brew.env")
	var settings []byte
	r.uses(conf, plain, func() {
		settings = r.read(conf)
		r.measured("brew", limit, func() {
			c, got := brew(r)
			if r.ok(c); !bytes.Equal(got, bottle) {
				r.Errorf("wrong bytes: %s %s", c.said, c.body)
			}
		})
	}, "brew", "--upstream", "https://"+indexName)
	return func(r *rig) {
		r.write(filepath.Join(r.mkdir(filepath.Dir(conf)), filepath.Base(conf)), settings)
		if c, _ := brew(r); c.failed == nil || !strings.Contains(c.said, gatewayURL) {
			r.Errorf("%v: %s %s", c.failed, c.said, c.body)
		}
	}
}

// toolchain makes a server of Rust toolchains whose only one has one component, in the layout of static.rust-lang.org.
func (r *rig) toolchain(root string) {
	r.Helper()
	const stem = "rustc-1.0.0"
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-unknown-linux-gnu"
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		r.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, f := range []struct {
		name, text string
		mode       int64
	}{
		{"rust-installer-version", "3\n", 0o644},
		{"components", "rustc\n", 0o644},
		{"rustc/manifest.in", "file:bin/rustc\nfile:lib/big\n", 0o644},
		{"rustc/bin/rustc", "#!/bin/sh\necho rustc 1.0.0\n", 0o755},
		{"rustc/lib/big", string(r.content(gatewaySize)), 0o644},
	} {
		err := w.WriteHeader(&tar.Header{Name: stem + "-" + machine + "/" + f.name, Mode: f.mode, Size: int64(len(f.text))})
		if err == nil {
			_, err = io.WriteString(w, f.text)
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		r.Fatal(err)
	}
	dist := r.mkdir(root, "dist")
	name := stem + "-" + machine + ".tar.gz"
	r.write(filepath.Join(dist, name), b.Bytes())
	manifest := fmt.Appendf(nil, `manifest-version = "2"
date = "2026-01-01"
[pkg.rust]
version = "1.0.0"
[pkg.rust.target.%[1]s]
available = true
[[pkg.rust.target.%[1]s.components]]
pkg = "rustc"
target = %[1]q
[pkg.rustc]
version = "1.0.0"
[pkg.rustc.target.%[1]s]
available = true
url = "https://static.rust-lang.org/dist/%[2]s"
hash = %[3]q
[profiles]
minimal = ["rustc"]
`, machine, name, sum(b.Bytes()))
	r.write(filepath.Join(dist, "channel-rust-stable.toml"), manifest)
	r.write(filepath.Join(dist, "channel-rust-stable.toml.sha256"), []byte(sum(manifest)+"  channel-rust-stable.toml\n"))
}

// rustupByGateway installs a toolchain. The addresses in its manifest are those of static.rust-lang.org, which rustup
// replaces.
func (r *rig) rustupByGateway(limit time.Duration) func(*rig) {
	r.Helper()
	r.toolchain(filepath.Join(r.nginx.Root(), "rust"))
	rustup := func(r *rig, vars []string) (ran, []byte) {
		r.Helper()
		dir := r.folder()
		c := r.client("env", append(append([]string{"RUSTUP_HOME=" + dir, "CARGO_HOME=" + dir}, vars...),
			"rustup", "toolchain", "install", "stable", "--profile", "minimal", "--no-self-update")...)
		found, _ := filepath.Glob(filepath.Join(dir, "toolchains", "*", "lib", "big"))
		if len(found) != 1 {
			return c, nil
		}
		return c, r.read(found[0])
	}
	profile := filepath.Join(r.lab.Dir, ".profile")
	var vars []string
	r.uses(profile, plain, func() {
		vars = r.exports(profile)
		r.measured("rustup", limit, func() {
			c, got := rustup(r, vars)
			if r.ok(c); !bytes.Equal(got, r.content(gatewaySize)) {
				r.Errorf("wrong bytes: %s", c.said)
			}
		})
	}, "rustup", "--upstream", "https://"+indexName+"/rust")
	return func(r *rig) {
		if c, _ := rustup(r, vars); c.failed == nil || !strings.Contains(c.said, gatewayURL) {
			r.Errorf("%v: %s", c.failed, c.said)
		}
	}
}
