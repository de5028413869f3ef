package trust

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	certificate = authority("ours")
	system      = authority("one") + authority("two") // certificates of the system
	private     = authority("private")
)

// authority returns something in the form of a certificate.
func authority(name string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)}))
}

func folder(t *testing.T, base string) *Folder {
	t.Helper()
	f, err := NewFolder(base, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Remove() })
	return f
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func value(t *testing.T, env []string, name string) string {
	t.Helper()
	var found []string
	for _, e := range env {
		if n, v, _ := strings.Cut(e, "="); n == name {
			found = append(found, v)
		}
	}
	if len(found) > 1 {
		t.Errorf("%s is there %d times", name, len(found))
	}
	return strings.Join(found, " and ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// systemTrusts makes a file the one with the certificates of the system.
func systemTrusts(t *testing.T, text string) string {
	t.Helper()
	files, root := rootFiles, systemRoot
	rootFiles, systemRoot = []string{write(t, text)}, t.TempDir()
	t.Cleanup(func() { rootFiles, systemRoot = files, root })
	return rootFiles[0]
}

func environ(t *testing.T, f *Folder, given ...string) (env []string, kept []Limit) {
	t.Helper()
	roots, err := CommandRoots((&environment{env: given}).get)
	if err != nil {
		t.Fatal(err)
	}
	env, kept, err = Environment(given, "curl", f, "http://127.0.0.1:1", []byte(certificate), roots, false)
	if err != nil {
		t.Fatal(err)
	}
	return env, kept
}

func TestEnvironment(t *testing.T) {
	systemTrusts(t, system)
	more := system + private
	f := folder(t, t.TempDir())
	env, kept := environ(t, f, "HOME="+t.TempDir(), "AWS_CA_BUNDLE="+write(t, more), "REQUESTS_CA_BUNDLE=/nonexistent", "http_proxy=http://other",
		"HTTPS_PROXY=http://other", "NO_PROXY=.lan", "KEEP=a=b", "WGETRC="+write(t, "quiet = on"), "APT_CONFIG="+write(t, "Quiet 1;\n"), "GIT_SSL_CAINFO="+write(t, more))
	for name, want := range map[string]string{
		"SSL_CERT_FILE": system + certificate, "AWS_CA_BUNDLE": more + certificate, "GIT_SSL_CAINFO": more + certificate, "NODE_EXTRA_CA_CERTS": certificate,
		"WGETRC":     "quiet = on\nca_certificate = " + value(t, env, "SSL_CERT_FILE") + "\n",
		"APT_CONFIG": "Acquire::https::CAInfo \"" + value(t, env, "SSL_CERT_FILE") + "\";\nQuiet 1;\n",
	} {
		path := value(t, env, name)
		if got := content(t, path); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 || filepath.Dir(path) != f.Path {
			t.Errorf("%s: %v, %v", path, is, err)
		}
	}
	for name, want := range map[string]string{
		"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1",
		"no_proxy": ".lan," + local, "NO_PROXY": ".lan," + local, "KEEP": "a=b", "REQUESTS_CA_BUNDLE": "/nonexistent", "CURL_CA_BUNDLE": "",
	} {
		if got := value(t, env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(kept) != 1 || kept[0].Name != "REQUESTS_CA_BUNDLE" {
		t.Errorf("kept %v", kept)
	}
	if is, err := os.Stat(f.Path); err != nil || is.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", is, err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestShims: programs without a variable are started with options, unless the user has set the same or the certificate may not be
// trusted.
func TestShims(t *testing.T) {
	systemTrusts(t, system)
	bin := filepath.Join(t.TempDir(), "it's", "bin")
	options := filepath.Join(bin, "../lib/python3.1/dist-packages/yt_dlp/options.py")
	err := errors.Join(os.MkdirAll(bin, 0o700), os.MkdirAll(filepath.Dir(options), 0o700), os.WriteFile(options, []byte("'no-certifi'"), 0o600))
	for _, name := range []string{"aria2c", "dnf", "lftp", "links", "yt-dlp"} { // they print their arguments
		err = errors.Join(err, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho \"$*\"\n"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(env []string, name string) string {
		arguments := ""
		if !strings.Contains(name, " ") {
			arguments = " -x 'a b'"
		}
		cmd := exec.Command("/bin/sh", "-c", name+arguments)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		return strings.TrimSuffix(string(out), "\n")
	}
	path, home := "PATH="+bin+":/bin", t.TempDir()
	env, _ := environ(t, folder(t, t.TempDir()), "HOME="+home, path)
	bundle := value(t, env, "SSL_CERT_FILE")
	trusts := "set ssl:ca-file \"" + bundle + "\";"
	for name, want := range map[string]string{
		"dnf":                          "--setopt=sslcacert=" + bundle + " -x a b",
		"lftp":                         "-e " + trusts + " -x a b",
		"lftp -u a,b -c 'get \"x y\"'": "-u a,b -c " + trusts + " get \"x y\"",
		"lftp -e 'cd /' -p 1 h":        "-e " + trusts + " cd / -p 1 h",
		"lftp -f script":               "-f script",
		"lftp --version":               "--version",
		"aria2c":                       "--ca-certificate=" + value(t, env, "SSL_CERT_FILE") + " -x a b",
		"links":                        "-http-proxy 127.0.0.1:1 -https-proxy 127.0.0.1:1 -no-proxy-domains localhost,127.0.0.1,[::1] -x a b",
		"yt-dlp":                       "--compat-options no-certifi -x a b",
	} {
		if got := run(env, name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for name, text := range map[string]string{".aria2/aria2.conf": "ca-certificate=/own\n", ".lftp/rc": "set ssl:ca-file \"/own\"\n", ".links2/links.cfg": "http_proxy \"own:1\"\n"} {
		path := filepath.Join(home, name)
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(options, []byte("an older version"), 0o600); err != nil {
		t.Fatal(err)
	}
	unchanged := func(env []string, given string) {
		for _, name := range []string{"aria2c", "lftp", "links", "yt-dlp"} {
			if got := run(env, name); got != "-x a b" {
				t.Errorf("%s: %s gets %q", given, name, got)
			}
		}
	}
	env, _ = environ(t, folder(t, t.TempDir()), "HOME="+home, path)
	unchanged(env, "with settings of its own")
	env, _ = environ(t, folder(t, t.TempDir()), "HOME="+t.TempDir(), path, "SSL_CERT_FILE="+write(t, private))
	unchanged(env, "a user's SSL_CERT_FILE with fewer authorities")
}

// TestNarrower: a program whose user limits it to fewer authorities does not get the certificate, whether by a variable or a file.
func TestNarrower(t *testing.T) {
	systemFile := systemTrusts(t, system)
	own, all := write(t, private), write(t, private+system)
	for _, c := range []struct {
		name  string
		env   []string
		files map[string]string // below HOME
		yes   string            // variables that then name a file with the certificate
		no    string            // those that do not
		kept  string
	}{
		{name: "nothing", yes: "SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS WGETRC APT_CONFIG git"},
		{
			name: "curl", env: []string{"CURL_CA_BUNDLE=" + own},
			yes: "SSL_CERT_FILE git", no: "CURL_CA_BUNDLE REQUESTS_CA_BUNDLE", kept: "CURL_CA_BUNDLE",
		},
		{
			name: "curl, complete", env: []string{"CURL_CA_BUNDLE=" + all},
			yes: "CURL_CA_BUNDLE SSL_CERT_FILE", no: "REQUESTS_CA_BUNDLE",
		},
		{name: "a folder", env: []string{"SSL_CERT_DIR=" + filepath.Dir(own)}, yes: "REQUESTS_CA_BUNDLE", no: "SSL_CERT_FILE CURL_CA_BUNDLE", kept: "SSL_CERT_DIR"},
		{name: "a folder, complete", env: []string{"SSL_CERT_DIR=" + filepath.Dir(all)}, yes: "REQUESTS_CA_BUNDLE SSL_CERT_FILE"},
		{name: "pip", env: []string{"PIP_CERT=" + own}, yes: "SSL_CERT_FILE", no: "PIP_CERT REQUESTS_CA_BUNDLE", kept: "PIP_CERT"},
		{
			name: "pip's file", files: map[string]string{".config/pip/pip.conf": "[global]\ncert = " + own + "\n"},
			yes: "SSL_CERT_FILE git", no: "PIP_CERT REQUESTS_CA_BUNDLE", kept: "cert",
		},
		{
			name: "pip's file, complete", files: map[string]string{".pip/pip.conf": "[global]\ncert: " + all + "\n"},
			yes: "REQUESTS_CA_BUNDLE",
		},
		{
			name: "conda's file", files: map[string]string{".condarc": "ssl_verify: " + own + "\n"},
			yes: "SSL_CERT_FILE", no: "REQUESTS_CA_BUNDLE", kept: "ssl_verify",
		},
		{name: "conda's file without a path", files: map[string]string{".condarc": "ssl_verify: true\n"}, yes: "REQUESTS_CA_BUNDLE"},
		{name: "aws", env: []string{"AWS_CA_BUNDLE=" + own}, yes: "REQUESTS_CA_BUNDLE", no: "AWS_CA_BUNDLE", kept: "AWS_CA_BUNDLE"},
		{name: "cargo", env: []string{"CARGO_HTTP_CAINFO=" + own}, yes: "SSL_CERT_FILE", no: "CARGO_HTTP_CAINFO", kept: "CARGO_HTTP_CAINFO"},
		{name: "nix", env: []string{"NIX_SSL_CERT_FILE=" + own}, yes: "SSL_CERT_FILE", no: "NIX_SSL_CERT_FILE", kept: "NIX_SSL_CERT_FILE"},
		{name: "nix, complete", env: []string{"NIX_SSL_CERT_FILE=" + all}, yes: "SSL_CERT_FILE NIX_SSL_CERT_FILE"},
		{name: "haskell", yes: "SYSTEM_CERTIFICATE_PATH"},
		{
			name: "haskell, own", env: []string{"SYSTEM_CERTIFICATE_PATH=" + own},
			yes: "SSL_CERT_FILE", no: "SYSTEM_CERTIFICATE_PATH", kept: "SYSTEM_CERTIFICATE_PATH",
		},
		{name: "haskell, complete", env: []string{"SYSTEM_CERTIFICATE_PATH=" + all}, yes: "SYSTEM_CERTIFICATE_PATH"},
		{name: "haskell, a folder", env: []string{"SYSTEM_CERTIFICATE_PATH=" + filepath.Dir(own)}, yes: "SSL_CERT_FILE", kept: "SYSTEM_CERTIFICATE_PATH"},
		{name: "git", env: []string{"GIT_SSL_CAINFO=" + own}, yes: "SSL_CERT_FILE", no: "git", kept: "GIT_SSL_CAINFO"},
		{name: "wget", files: map[string]string{".wgetrc": "ca-directory = " + filepath.Dir(own) + "\n"}, yes: "git", no: "WGETRC", kept: "ca-directory"},
		{name: "wget, a file", files: map[string]string{".wgetrc": "ca_certificate = " + own + "\n"}, yes: "WGETRC"},
		{name: "npm", files: map[string]string{".npmrc": "cafile=" + own + "\n"}, yes: "NODE_EXTRA_CA_CERTS", no: "npm_config_cafile", kept: "cafile"},
		{name: "npm, complete", files: map[string]string{".npmrc": "cafile = " + all + "\n"}, yes: "NODE_EXTRA_CA_CERTS npm_config_cafile"},
		{name: "npm's variable", env: []string{"npm_config_cafile=" + own}, no: "npm_config_cafile", kept: "npm_config_cafile"},
		{name: "perl and PHP", yes: "PERL_LWP_SSL_CA_FILE php"},
		{name: "perl", env: []string{"PERL_LWP_SSL_CA_FILE=" + own}, yes: "php", no: "PERL_LWP_SSL_CA_FILE", kept: "PERL_LWP_SSL_CA_FILE"},
		{name: "perl's other variable", env: []string{"HTTPS_CA_DIR=" + filepath.Dir(own)}, no: "PERL_LWP_SSL_CA_FILE", kept: "HTTPS_CA_DIR"},
		{name: "PHP", env: []string{"PHPRC=" + write(t, "openssl.cafile = \""+own+"\"\n")}, yes: "PERL_LWP_SSL_CA_FILE", no: "php", kept: "openssl.cafile"},
		{name: "Node", env: []string{"NODE_EXTRA_CA_CERTS=" + own}, yes: "NODE_EXTRA_CA_CERTS"}, // it adds to others
		{
			name: "other authorities than the system's", env: []string{"SSL_CERT_FILE=" + own},
			yes: "SSL_CERT_FILE", no: "REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS WGETRC APT_CONFIG git",
		},
		{
			name: "other authorities for several programs", env: []string{"SSL_CERT_FILE=" + own, "NODE_EXTRA_CA_CERTS=" + own, "CURL_CA_BUNDLE=" + all, "PIP_CERT=" + systemFile},
			yes: "SSL_CERT_FILE NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE", no: "PIP_CERT SYSTEM_CERTIFICATE_PATH", kept: "PIP_CERT",
		},
	} {
		t.Run("R227 "+c.name, func(t *testing.T) {
			home := t.TempDir()
			for path, text := range c.files {
				create(t, filepath.Join(home, path), text)
			}
			env, kept := environ(t, folder(t, t.TempDir()), append(c.env, "HOME="+home)...)
			lead(t, env, c.yes, c.no)
			var names []string
			for _, l := range kept {
				names = append(names, l.Name)
			}
			if got := strings.Join(names, " "); got != c.kept {
				t.Errorf("kept %q, want %q", got, c.kept)
			}
		})
	}
}

// TestCompany: programs with a built-in list do not get the certificate on a machine with an authority that such lists do not have.
func TestCompany(t *testing.T) {
	systemTrusts(t, system+private)
	own := filepath.Join(systemRoot, "usr/local/share/ca-certificates/company/root.crt")
	for _, c := range []struct{ name, text, extra, yes, no, kept string }{
		{"an authority", private, "", "SSL_CERT_FILE WGETRC git", "NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE", "their built-in list"},
		{"an authority that Node was given", private, own, "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "their built-in list"},
		{"a file that cannot be read", "?", "", "SSL_CERT_FILE WGETRC git", "NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE", "their built-in list"},
		{"an authority that the system does not use", certificate, "", "NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE", "", ""},
	} {
		t.Run("R227 "+c.name, func(t *testing.T) {
			create(t, own, c.text)
			env, kept := environ(t, folder(t, t.TempDir()), "HOME="+t.TempDir(), addition+"="+c.extra)
			lead(t, env, c.yes, c.no)
			if text := strings.Trim(fmt.Sprint(kept), "[]"); text != c.kept {
				t.Errorf("kept %q, want %q", text, c.kept)
			}
		})
	}
}

// TestFollowers: on such a machine, programs that verify with the system's file get the certificate, and those with a list do not.
func TestFollowers(t *testing.T) {
	const both = "REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PERL_LWP_SSL_CA_FILE"
	for _, c := range []struct {
		name    string
		remove  string            // below the system's root
		files   map[string]string // below HOME
		env     []string
		command string
		yes, no string
	}{
		{name: "a distribution's", yes: both},
		{name: "no requests", remove: "usr/lib/python3", yes: "PERL_LWP_SSL_CA_FILE", no: "REQUESTS_CA_BUNDLE CURL_CA_BUNDLE"},
		{name: "no LWP", remove: "usr/share/perl5", yes: "REQUESTS_CA_BUNDLE", no: "PERL_LWP_SSL_CA_FILE"},
		{name: "an active virtual environment", env: []string{"VIRTUAL_ENV=/x"}, yes: "PERL_LWP_SSL_CA_FILE", no: "REQUESTS_CA_BUNDLE"},
		{name: "another interpreter", env: []string{"PATH=/opt/bin:/usr/bin"}, no: both},
		{name: "pip install --user", files: map[string]string{".local/lib/python3.11/site-packages/certifi/cacert.pem": ""}, no: "REQUESTS_CA_BUNDLE"},
		{name: "a virtual environment's program", files: map[string]string{"v/pyvenv.cfg": ""}, command: "v/bin/x", no: "REQUESTS_CA_BUNDLE"},
		{name: "local::lib", files: map[string]string{"perl5/x": ""}, yes: "REQUESTS_CA_BUNDLE", no: "PERL_LWP_SSL_CA_FILE"},
	} {
		t.Run("R227 "+c.name, func(t *testing.T) {
			system := systemTrusts(t, system+private)
			for path, text := range map[string]string{
				"usr/local/share/ca-certificates/company.crt": private, "usr/bin/python3": "", "usr/bin/perl": "", "opt/bin/python3": "", "opt/bin/perl": "",
				"usr/lib/python3/dist-packages/certifi/core.py": "DEBIAN_CA_CERTS_PATH = '" + system + "'", "usr/share/perl5/LWP/Protocol/https.pm": system,
			} {
				create(t, filepath.Join(systemRoot, path), text)
			}
			home := t.TempDir()
			for path, text := range c.files {
				create(t, filepath.Join(home, path), text)
			}
			if err := os.RemoveAll(filepath.Join(systemRoot, cmp.Or(c.remove, "none"))); err != nil {
				t.Fatal(err)
			}
			roots, err := SystemRoots()
			if err != nil {
				t.Fatal(err)
			}
			given := append([]string{"PATH=/usr/bin", "HOME=" + home}, c.env...)
			env, _, err := Environment(given, filepath.Join(home, c.command), folder(t, t.TempDir()), "http://127.0.0.1:1", []byte(certificate), roots, false)
			if err != nil {
				t.Fatal(err)
			}
			lead(t, env, c.yes, c.no)
		})
	}
}

func create(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// lead wants the variables yes, and none of no, to lead to the certificate, see gives.
func lead(t *testing.T, env []string, yes, no string) {
	t.Helper()
	for _, name := range strings.Fields(yes) {
		if !gives(t, env, name) {
			t.Errorf("%s does not lead to the certificate", name)
		}
	}
	for _, name := range strings.Fields(no) {
		if gives(t, env, name) {
			t.Errorf("%s leads to the certificate", name)
		}
	}
}

// gives reports whether a variable names a file with the certificate, or one that names such a file; for git, one of its variables.
func gives(t *testing.T, env []string, name string) bool {
	t.Helper()
	if name == "git" {
		return gives(t, env, gitBundle) || gives(t, env, gitSystem)
	}
	path := value(t, env, name)
	if name == "php" {
		if path = value(t, env, "PHP_INI_SCAN_DIR"); path != "" {
			path = filepath.Join(strings.TrimPrefix(path, ":"), "tributary.ini")
		}
	}
	if path == "" {
		return false
	}
	text := content(t, path)
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \n\";", c) }) {
		if strings.HasPrefix(word, "/") && strings.HasSuffix(word, ".pem") {
			text += content(t, word)
		}
	}
	return strings.Contains(text, certificate)
}

// TestGitSettings: for others than root, git gets the certificate by settings that all others precede.
func TestGitSettings(t *testing.T) {
	systemTrusts(t, system)
	f := folder(t, t.TempDir())
	e := environment{env: []string{"GIT_CONFIG_SYSTEM=/etc/own"}, folder: f, certificate: []byte(certificate)}
	e.roots, _ = SystemRoots()
	e.gitSettings()
	want := "[http]\n\tsslCAInfo = \"" + filepath.Join(f.Path, "ca-0.pem") + "\"\n[include]\n\tpath = \"/etc/own\"\n"
	if got := content(t, e.get("GIT_CONFIG_SYSTEM")); got != want || e.err != nil {
		t.Errorf("%q, want %q: %v", got, want, e.err)
	}
}

func TestNoSystemCertificates(t *testing.T) {
	if _, err := CommandRoots(func(string) string { return "/nonexistent" }); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("error %v", err)
	}
}

// TestLimits: the settings in the files of each program are found, and those in comments are not.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ program, path, text, want string }{
		{"apt", "/etc/apt/apt.conf.d/10a", "Acquire::https::CaInfo \"/a\";\n// Acquire::https::CaInfo \"/b\";\n", "CaInfo /a"},
		{"apt", "/etc/apt/apt.conf", "Acquire { https::h.example.com {\n SslCert \"/a\"; SslKey \"/b\"; } }", "SslCert /a client"},
		{"conda", "~/.condarc", "ssl_verify: '/a'\n#ssl_verify: /b\nclient_ssl_cert: /c\n", "ssl_verify /a, client_ssl_cert /c client"},
		{"conda", "~/.condarc", "ssl_verify: False\n", ""},
		{"containerd", "/etc/containerd/certs.d/r/hosts.toml", "ca = \"/a\"\n client = [[\"/b\", \"/k\"]]\n", "ca /a, client /b client"},
		{"dnf", "/etc/yum.repos.d/a.repo", "[a]\nsslcacert=/a\nsslclientcert = /b\nsslverify=1\n", "sslcacert /a, sslclientcert /b client"},
		{"docker", "/etc/docker/certs.d/r/ca.crt", private, "ca.crt"},
		{"docker", "/etc/docker/certs.d/r/client.cert", "", "client.cert client"},
		{"git", "~/.gitconfig", "[http]\n\tsslCAInfo = /a\n;\tsslCAInfo = /b\n", "sslCAInfo /a"},
		{"nix", "/etc/nix/nix.conf", "ssl-cert-file = /a\n", "ssl-cert-file /a"},
		{"npm", "~/.npmrc", "registry=https://r\ncafile=/a\n;cafile=/b\n", "cafile /a"},
		{"php", "/etc/php/8.2/cli/conf.d/9.ini", "openssl.cafile = \"/a\"\n;curl.cainfo=/b\ncurl.cainfo=/c\n", "openssl.cafile /a, curl.cainfo /c"},
		{"pip", "~/.config/pip/pip.conf", "[install]\ncert = /a\nclient_cert: /b\n#cert = /c\nindex-url = /simple\n", "cert /a, client_cert /b client"},
		{"podman", "~/.config/containers/certs.d/r/a.crt", private, "a.crt"},
		{"wget", "~/.wgetrc", "CA_Directory = /a\n#ca_certificate = /b\n", "CA_Directory /a"},
	} {
		root, home := t.TempDir(), t.TempDir()
		path := filepath.Join(root, c.path)
		if rest, ok := strings.CutPrefix(c.path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range Limits(c.program, func(name string) string { return map[string]string{"HOME": home}[name] }, root) {
			text := l.Name
			if l.Value != path {
				text += " " + l.Value
			}
			if l.Client {
				text += " client"
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.path, strings.Join(got, ", "), c.want)
		}
	}
}

// TestPrune: a folder whose process was killed is removed at the next start; a folder in use, or one that is not ours, stays.
func TestPrune(t *testing.T) {
	base := t.TempDir()
	used := folder(t, base)
	left := filepath.Join(base, folderPrefix+"left")
	elsewhere := t.TempDir()
	for _, path := range []string{left, filepath.Join(elsewhere, "kept")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, folderPrefix+"link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	second := folder(t, base)
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(base, e.Name()))
	}
	want := []string{used.Path, second.Path, link}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "kept")); err != nil {
		t.Error(err)
	}
}

// TestSettingsFiles: Mercurial and wget2 get the certificate by files of settings, beside those that they read otherwise, unless a setting
// limits whom they trust. wget2 uses no proxy for https then, nor if some hosts are to be tunnels: it could not use them.
func TestSettingsFiles(t *testing.T) {
	systemFile := systemTrusts(t, system)
	own, more := write(t, private), write(t, system+private)
	for _, c := range []struct {
		name, hgrc, wget2rc string
		some                bool
		hg, wget2           string // content of the file that their setting names; "" = they get none
	}{
		{name: "no settings", hg: system, wget2: system},
		{name: "other settings", hgrc: "[ui]\nusername = a\n", wget2rc: "verbose = off\n", hg: system, wget2: system},
		{name: "the system's file", hgrc: "[web]\ncacerts = " + systemFile + "\n", wget2rc: "ca_certificate=" + systemFile + "\n", hg: system, wget2: system},
		{name: "more", hgrc: "[web]\ncacerts = " + more + "\n", wget2rc: "ca-certificate = " + more + "\n", hg: system + private, wget2: system + private},
		{name: "fewer", hgrc: "[web]\ncacerts = " + own + "\n", wget2rc: "ca-certificate = " + own + "\n"},
		{name: "some hosts are tunnels", some: true, hg: system},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			for name, text := range map[string]string{".hgrc": c.hgrc, ".wget2rc": c.wget2rc} {
				create(t, filepath.Join(home, name), text)
			}
			roots, err := SystemRoots()
			if err != nil {
				t.Fatal(err)
			}
			env, _, err := Environment([]string{"HOME=" + home}, "sh", folder(t, t.TempDir()), "http://127.0.0.1:1", []byte(certificate), roots, c.some)
			if err != nil {
				t.Fatal(err)
			}
			e := &environment{env: env}
			files := filepath.SplitList(e.get("HGRCPATH"))
			if c.hg == "" {
				if len(files) > 0 {
					t.Errorf("HGRCPATH is %v", files)
				}
			} else if before := files[:len(files)-1]; len(before) != 1 || before[0] != filepath.Join(home, ".hgrc") {
				t.Errorf("HGRCPATH is %v", files)
			} else if _, bundle, _ := strings.Cut(strings.TrimSpace(content(t, files[1])), "[web]\ncacerts = "); content(t, bundle) != c.hg+certificate {
				t.Errorf("Mercurial gets %q", content(t, bundle))
			}
			text := content(t, e.get("SYSTEM_WGET2RC"))
			_, bundle, trusts := strings.Cut(strings.TrimSpace(text), "ca-certificate = ")
			if trusts != (c.wget2 != "") || trusts && content(t, bundle) != c.wget2+certificate || !trusts && text != "https-proxy =\n" {
				t.Errorf("wget2 gets %q", text)
			}
		})
	}
}
