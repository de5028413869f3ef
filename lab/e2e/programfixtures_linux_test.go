package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tributary-http/tributary/lab/netlab"
)

// programFixture is a script that puts a package with the object onto the origin, whose folder is $1 and whose URL is $2.
// It runs in a new folder with the object in the file data.
type programFixture struct {
	needs  string // programs that must be there
	script string
}

// programFixtures are what programs of programs.toml want that need a program themselves.
var programFixtures = []programFixture{
	{"hg", `hg init r && cp data r/data && hg -R r add -q r/data
		hg -R r --config ui.username=e2e commit -q -m data && hg -R r bundle -q -a -t none-v2 "$1/object.bin.hg"`},
	{"gem", `mkdir -p "$1/gems/gems"
		printf 'Gem::Specification.new { |s| s.name = "tributary-e2e"; s.version = "1.0.0"; s.summary = "e2e"
			s.authors = ["e2e"]; s.files = ["data"] }' > e.gemspec
		gem build -q e.gemspec > /dev/null 2>&1 && mv *.gem "$1/gems/gems/"
		gem generate_index -q -d "$1/gems" > /dev/null 2>&1`},
	// w.ufdio: not compressed
	{"rpmbuild createrepo_c", `printf '%s\n' \
			'Name: tributary-e2e' 'Version: 1' 'Release: 1' 'Summary: e2e' 'License: none' 'BuildArch: noarch' \
			%description e2e %install "install -D -m 644 $PWD/data %{buildroot}/opt/data" %files /opt/data > e.spec
		rpmbuild -bb --quiet -D "_topdir $PWD" -D "_rpmdir $1/rpm" -D '_binary_payload w.ufdio' e.spec
		createrepo_c --quiet --checksum sha256 "$1/rpm"`},
	{"ostree flatpak", `mkdir -p app/files app/export && mv data app/files/
		printf '[Application]\nname=org.example.Tributary\nruntime=org.example.Platform/x86_64/1\n' > app/metadata
		flatpak build-export --disable-sandbox "$1/flatpak" app > /dev/null`},
	// debootstrap wants ca-certificates if its mirror has https
	{"dpkg-deb apt-ftparchive", `mkdir -p deb/DEBIAN deb/usr && mv data deb/usr/
		printf '%s\n' 'Package: ca-certificates' 'Version: 1' 'Architecture: all' 'Maintainer: e2e <e2e@example.org>' \
			'Priority: required' 'Description: e2e' > deb/DEBIAN/control
		mkdir -p "$1/debian/pool" && dpkg-deb -Znone -b deb "$1/debian/pool/ca-certificates_1_all.deb" > /dev/null
		cd "$1/debian" && b=dists/lab/main/binary-$(dpkg --print-architecture) && mkdir -p "$b"
		apt-ftparchive packages pool > "$b/Packages" && gzip -k "$b/Packages"
		apt-ftparchive -o APT::FTPArchive::Release::Codename=lab -o APT::FTPArchive::Release::Components=main \
			-o APT::FTPArchive::Release::Architectures="$(dpkg --print-architecture)" release dists/lab > Release
		mv Release dists/lab/`},
	{"git", `git init -q -b main w && cd w
		oid=$(sha256sum < ../data | cut -c-64)
		printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 5000000\n' "$oid" > data
		git add data && echo 'data filter=lfs' > .gitattributes && git add .gitattributes
		git -c user.name=e2e -c user.email=e2e@example.org commit -q -m data
		git init -q --bare -b main "$1/lfs.git" && git -c core.hooksPath=/dev/null push -q "$1/lfs.git" main
		git -C "$1/lfs.git" repack -q -a -d && git -C "$1/lfs.git" update-server-info`},
	{"svnadmin svn", `mkdir i && mv data i/ && svnadmin create "$1/../svn"
		svn import -q -m e2e i "file://$(realpath "$1/..")/svn"
		chown -R www-data "$1/../svn"`},
}

// offerPrograms puts what needs no program onto the origin.
func (r *programRig) offerPrograms() {
	r.Helper()
	origin, object := "https://"+netlab.OriginName, string(r.content)
	r.offer("object.jpg", r.content)
	r.offer("object.rss", fmt.Appendf(nil, `<?xml version="1.0"?><rss version="2.0"><channel>
		<title>e2e</title><item><title>e2e</title>
		<enclosure url="%s/object.bin" length="%d" type="audio/mpeg"/></item></channel></rss>`, origin, len(object)))
	// a page that shows the object as text before it is complete
	r.offer("object.html", []byte(`<!DOCTYPE html><pre id="o"></pre><script>
		const x = new XMLHttpRequest(), byte = c => String.fromCharCode(c.charCodeAt(0) & 255);
		x.open("GET", "object.bin", false); x.overrideMimeType("text/plain; charset=x-user-defined"); x.send();
		document.getElementById("o").textContent = btoa(x.responseText.replace(/[^]/g, byte));
		</script>`))

	for _, m := range []struct{ group, artifact, version, data string }{
		{"lab", "tributary-e2e", "1.0", object},
		{"org.codehaus.plexus", "plexus-utils", "1.1", ""}, // which Maven wants beside each extension
	} {
		path := fmt.Sprintf("maven/%s/%s/%s/%[2]s-%[3]s.", strings.ReplaceAll(m.group, ".", "/"), m.artifact, m.version)
		r.offer(path+"pom", fmt.Appendf(nil, `<project><modelVersion>4.0.0</modelVersion><groupId>%s</groupId>
			<artifactId>%s</artifactId><version>%s</version></project>`, m.group, m.artifact, m.version))
		r.offer(path+"jar", r.zipped([2]string{"data", m.data}))
	}

	const pkg = "tributary-e2e-1-1-any.pkg.tar.gz"
	r.offer("pacman/"+pkg, r.archive(map[string]string{
		".PKGINFO": "pkgname = tributary-e2e\npkgver = 1-1\npkgdesc = e2e\nsize = 5000000\narch = any\n", "data": object,
	}))
	r.offer("pacman/lab.db", r.archive(map[string]string{"tributary-e2e-1-1/desc": "%FILENAME%\n" + pkg +
		"\n\n%NAME%\ntributary-e2e\n\n%VERSION%\n1-1\n\n%ARCH%\nany\n"}))

	r.offer("cran/src/contrib/PACKAGES", []byte("Package: tributarye2e\nVersion: 1.0\nNeedsCompilation: no\n"))
	r.offer("cran/src/contrib/tributarye2e_1.0.tar.gz", r.archive(map[string]string{
		"tributarye2e/DESCRIPTION": "Package: tributarye2e\nVersion: 1.0\nTitle: E2E\nDescription: E2E.\nAuthor: E2E\n" +
			"Maintainer: E2E <e2e@example.org>\nLicense: none\n",
		"tributarye2e/NAMESPACE": "", "tributarye2e/inst/data": object,
	}))

	r.offer("rocks/tributary-e2e-1.0-1.rockspec", fmt.Appendf(nil, `rockspec_format = "3.0"
package = "tributary-e2e"
version = "1.0-1"
source = { url = "%s/npm/files/tributary-e2e-1.0.0.tgz", dir = "package" }
build = { type = "builtin", modules = {}, install = { lua = { ["data"] = "data" } } }
`, origin))

	r.offer("cpan/Tributary-E2E-1.0.tar.gz", r.archive(map[string]string{
		"Tributary-E2E-1.0/Makefile.PL": "use ExtUtils::MakeMaker; WriteMakefile(NAME => 'Tributary::E2E', VERSION => '1.0', " +
			"PM => {data => '$(INST_LIB)/Tributary/data'});\n",
		"Tributary-E2E-1.0/data": object,
	}))

	chart := r.archive(map[string]string{"e2e/Chart.yaml": "apiVersion: v2\nname: e2e\nversion: 1.0.0\n", "e2e/data": object})
	r.offer("chart.tgz", chart)

	const cabal = "cabal-version: 2.4\nname: tributary-e2e\nversion: 1.0\nextra-source-files: data\n" +
		"library\n  default-language: Haskell2010\n"
	r.offer("cabal/00-index.tar.gz", r.archive(map[string]string{"tributary-e2e/1.0/tributary-e2e.cabal": cabal}))
	r.offer("cabal/package/tributary-e2e-1.0.tar.gz", r.archive(map[string]string{
		"tributary-e2e-1.0/tributary-e2e.cabal": cabal, "tributary-e2e-1.0/data": object,
	}))

	opam := fmt.Sprintf("opam-version: \"2.0\"\nurl { src: \"%s/chart.tgz\" checksum: \"sha256=%s\" }\n", origin, sum(chart))
	r.offer("opam/repo", []byte("opam-version: \"2.0\"\n"))
	r.offer("opam/index.tar.gz", r.archive(map[string]string{
		"repo": "opam-version: \"2.0\"\n", "packages/tributary/tributary.1/opam": opam,
	}))

	// a program that writes its own end
	bazel := fmt.Appendf(nil, "#!/bin/sh\ntail -c %d \"$0\" > out; exit\n", len(object))
	r.offer("bazel/7.0.0/bazel-7.0.0-linux-x86_64", append(bazel, object...))

	r.offer("playwright/builds/ffmpeg/1013/ffmpeg-linux.zip", r.zipped([2]string{"ffmpeg-linux", object}))

	// Git LFS: the answer to a POST, which nginx only gives as the page of an error
	r.offer("lfs.git/info/lfs/objects/batch", fmt.Appendf(nil, `{"transfer":"basic",
		"objects":[{"oid":%q,"size":%d,"authenticated":true,"actions":{"download":{"href":"%s/object.bin"}}}]}`, sum(r.content), len(object), origin))
}

// runFixtures runs the scripts of programFixtures. What needs a program that is missing is left out, and its row is
// skipped.
func (r *programRig) runFixtures() {
	r.Helper()
next:
	for _, f := range programFixtures {
		for program := range strings.FieldsSeq(f.needs) {
			if _, err := exec.LookPath(program); err != nil {
				continue next
			}
		}
		dir := filepath.Dir(r.file())
		r.write(filepath.Join(dir, "data"), r.content)
		cmd := exec.Command("sh", "-ec", f.script, "sh", r.nginx.Root(), "https://"+netlab.OriginName)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			r.Logf("the package for %s is left out: %v\n%s", f.needs, err, out)
		}
	}
}

// startSVN serves the repository of Subversion by Apache, to which nginx leads: its clients want WebDAV.
func (r *programRig) startSVN() {
	r.Helper()
	const modules = "/usr/lib/apache2/modules/"
	repository := filepath.Join(r.nginx.Root(), "../svn")
	for _, path := range []string{repository, modules + "mod_dav_svn.so"} {
		if _, err := os.Stat(path); err != nil {
			return
		}
	}
	dir := filepath.Dir(r.file())
	conf := netlab.ApacheConfig(dir, dir, 8083, 0, netlab.Certificate{})
	for _, module := range []string{"dav", "dav_svn"} {
		conf += fmt.Sprintf("LoadModule %s_module %smod_%[1]s.so\n", module, modules)
	}
	conf += fmt.Sprintf("<Location /svn>\nDAV svn\nSVNPath %s\nRequire all granted\n</Location>\n", repository)
	r.write(filepath.Join(dir, "httpd.conf"), []byte(conf))
	server := r.lab.Server(r.ctx, "apache2", "-DFOREGROUND", "-f", filepath.Join(dir, "httpd.conf"))
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
}
