package trust

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// bundles are the variables that name a file with all certificates that a program trusts. docs/RUN.md lists which
// program reads which; each was tested.
var bundles = []string{
	certFile, "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", gitBundle, "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	"MOJO_CA_FILE", "NIX_SSL_CERT_FILE", haskell,
}

const (
	certFile  = "SSL_CERT_FILE"
	gitBundle = "GIT_SSL_CAINFO"
	gitSystem = "GIT_CONFIG_SYSTEM"
	haskell   = "SYSTEM_CERTIFICATE_PATH" // of programs written in Haskell; it may also name a folder
)

// systemRoot is the prefix of the system's paths.
var systemRoot = "/"

// addition is the variable that names a file with certificates in addition to those built into a program.
const addition = "NODE_EXTRA_CA_CERTS"

// local are the hosts that programs must not request from the proxy: it rejects them.
const local = "localhost,127.0.0.1,127.0.0.0/8,::1"

// ownList is the limit of programs that bring a list of authorities, where the system has more.
var ownList = Limit{Name: "their built-in list"}

// Environment returns env with variables that make programs use the proxy and trust a certificate in PEM form, in
// addition to those that they already trust. The proxy verifies servers with roots, and a program with the certificate
// accepts what the proxy accepts. So the settings of a user that limit a program to fewer authorities stay as they are,
// and are returned; a variable that names a file with all of roots gets a file with the same content and the
// certificate. command is the path or name of the program that gets the result. some says that connections to some
// hosts are to stay encrypted from the program to the server.
func Environment(env []string, command string, f *Folder, proxy string, certificate []byte, roots Roots,
	some bool,
) (changed []string, kept []Limit, err error) {
	given := environment{env: env}
	e := environment{env: slices.Clone(env), folder: f, certificate: certificate, roots: roots}
	for _, name := range []string{"http_proxy", "https_proxy"} {
		e.set(name, proxy)
		e.set(strings.ToUpper(name), proxy)
	}
	e.set("no_proxy", e.noProxy())
	e.set("NO_PROXY", e.get("no_proxy"))
	e.set("NODE_USE_ENV_PROXY", "1") // Node 24, and 22.21
	for _, name := range bundles {
		if file := given.get(name); file != "" && e.allows(Limit{Name: name, Value: file}) {
			e.set(name, e.bundle(file))
		}
	}
	if file := given.get("MOJO_CA_FILE"); given.get("MOJO_PROXY") == "" &&
		(file == "" || e.get("MOJO_CA_FILE") != file) {
		e.set("MOJO_PROXY", "1") // Mojo::UserAgent reads the other variables then
	}
	if given.get(certFile) == "" && e.allows(Limits("openssl", given.get, systemRoot)...) {
		e.set(certFile, e.bundle(roots.Path))
	}
	usual, _ := SystemRoots() // of programs without settings; if unknown, they do not get the certificate
	extra := given.get(addition)
	builtIn := usual.public(systemRoot) // at most
	all := certificatesIn(extra)
	switch all.add(builtIn); {
	case roots.within(all):
		e.set(addition, e.bundle(extra))
	case extra != "":
		e.keep(Limit{Name: addition, Value: extra})
	case roots.within(usual.all):
		e.keep(ownList)
	}
	if roots.within(usual.all) {
		switch {
		case given.get("REQUESTS_CA_BUNDLE")+given.get("CURL_CA_BUNDLE") != "":
		case !roots.within(builtIn) && !e.follows(python, command, usual.Path):
			e.keep(ownList)
		case e.allows(append(Limits("pip", given.get, systemRoot), Limits("conda", given.get, systemRoot)...)...):
			e.set("REQUESTS_CA_BUNDLE", e.bundle(roots.Path))
			if given.get("SSL_CERT_DIR") == "" { // which curl would no longer read
				e.set("CURL_CA_BUNDLE", e.bundle(roots.Path)) // R reads it
			}
		}
		if given.get(haskell) == "" {
			e.set(haskell, e.bundle(roots.Path))
		}
		e.git()
		e.wget()
		e.hg()
		e.apt()
		e.php()
		if (roots.within(builtIn) || e.follows(perl, command, usual.Path)) &&
			e.allows(Limits("perl", given.get, systemRoot)...) {
			e.set("PERL_LWP_SSL_CA_FILE",
				e.bundle(cmp.Or(given.get("PERL_LWP_SSL_CA_FILE"), given.get("HTTPS_CA_FILE"), roots.Path)))
		}
	}
	e.wget2(roots.within(usual.all) && !some)
	e.npm()
	e.java(proxy, builtIn)
	e.shims(proxy, usual.all, builtIn)
	return e.env, e.kept, e.err
}

// allows reports whether programs with these settings may get the certificate. It notes the settings that forbid it.
func (e *environment) allows(all ...Limit) bool {
	// the proxy does not open connections that need one
	all = slices.DeleteFunc(all, func(l Limit) bool { return l.Client })
	narrower := e.roots.Narrower(all)
	e.keep(narrower...)
	return len(narrower) == 0
}

func (e *environment) keep(all ...Limit) {
	for _, l := range all {
		if !slices.Contains(e.kept, l) {
			e.kept = append(e.kept, l)
		}
	}
}

// git gives git the certificate by the settings of the system, since all others precede them. root's git may also write
// those: it gets a variable, which precedes all others.
func (e *environment) git() {
	switch {
	case e.get(gitBundle) != "":
	case os.Geteuid() == 0:
		if e.allows(Limits("git", e.get, systemRoot)...) {
			e.set(gitBundle, e.bundle(e.roots.Path))
		}
	default:
		e.gitSettings()
	}
}

func (e *environment) gitSettings() {
	system := cmp.Or(e.get(gitSystem), "/etc/gitconfig")
	text := fmt.Sprintf("[http]\n\tsslCAInfo = %q\n[include]\n\tpath = %q\n", e.bundle(e.roots.Path), system)
	path, err := e.folder.write("gitconfig", []byte(text))
	e.err = errors.Join(e.err, err)
	e.set(gitSystem, path)
}

// wget gives wget the certificate by its settings, since Debian's reads no variable. It trusts a file in addition to a
// folder.
func (e *environment) wget() {
	file := e.roots.Path
	for _, l := range Limits("wget", e.get, systemRoot) {
		if strings.Contains(strings.ToLower(l.Name), "certificate") {
			file = l.Value
		} else if !e.allows(l) {
			return
		}
	}
	e.config("WGETRC", filepath.Join(e.get("HOME"), ".wgetrc"), func(text string) string {
		return line(text) + "ca_certificate = " + e.bundle(file) + "\n"
	})
}

// wget2 gives wget2 the certificate by the settings of the system. It speaks TLS to every proxy for https, and sends it
// requests that are not encrypted for the server. So if it may not trust the certificate, or some hosts are to be
// tunnels, it gets no such proxy.
func (e *environment) wget2(may bool) {
	file := e.roots.Path
	for _, l := range Limits("wget2", e.get, systemRoot) {
		if strings.Contains(strings.ToLower(l.Name), "certificate") {
			file = l.Value
		}
		may = may && e.allows(l)
	}
	e.config("SYSTEM_WGET2RC", filepath.Join(systemRoot, "/etc/wget2rc"), func(text string) string {
		if !may {
			return line(text) + "https-proxy =\n"
		}
		return line(text) + "ca-certificate = " + e.bundle(file) + "\n"
	})
}

// hg gives Mercurial the certificate by one more file of settings.
func (e *environment) hg() {
	file, all := e.roots.Path, Limits("hg", e.get, systemRoot)
	if !e.allows(all...) {
		return
	}
	if len(all) > 0 {
		file = all[len(all)-1].Value // later files precede earlier ones
	}
	path, err := e.folder.write("hgrc", []byte("[web]\ncacerts = "+e.bundle(file)+"\n"))
	e.err = errors.Join(e.err, err)
	files := filepath.SplitList(e.get("HGRCPATH"))
	if len(files) == 0 { // what Mercurial reads without the variable
		files = matching([]string{
			"/usr/lib/python3*/*-packages/mercurial/defaultrc", "/etc/mercurial/hgrc", "/etc/mercurial/hgrc.d",
			"~/.hgrc", "~config/hg/hgrc",
		}, e.get, systemRoot)
	}
	e.set("HGRCPATH", strings.Join(append(files, path), string(filepath.ListSeparator)))
}

// npm gives npm the certificate if its settings name a file of authorities, which replaces those that
// NODE_EXTRA_CA_CERTS adds to.
func (e *environment) npm() {
	all := Limits("npm", e.get, systemRoot)
	if len(all) == 0 || !e.allows(all...) {
		return
	}
	first := all[0] // a variable precedes all files, and later files precede earlier ones
	if first.File != "" {
		first = all[len(all)-1]
	}
	e.set("npm_config_cafile", e.bundle(first.Value))
}

// php gives PHP the certificate by a further folder of settings.
func (e *environment) php() {
	if !e.allows(Limits("php", e.get, systemRoot)...) {
		return
	}
	bundle := e.bundle(e.roots.Path)
	text := fmt.Sprintf("openssl.cafile = %q\ncurl.cainfo = %q\n", bundle, bundle)
	path, err := e.folder.write("tributary.ini", []byte(text))
	e.err = errors.Join(e.err, err)
	// an empty entry is the folder that PHP was built with
	e.set("PHP_INI_SCAN_DIR", e.get("PHP_INI_SCAN_DIR")+":"+filepath.Dir(path))
}

// apt gives apt the certificate by the first file that it reads. Later ones precede it.
func (e *environment) apt() {
	bundle := e.bundle(e.roots.Path)
	if e.folder.Apt != 0 {
		bundle = e.forApt(bundle)
	}
	e.config("APT_CONFIG", "",
		func(text string) string { return "Acquire::https::CAInfo " + strconv.Quote(bundle) + ";\n" + text })
}

// line returns a text that ends with a whole line.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// forApt copies a file for the user that root's apt downloads as.
func (e *environment) forApt(file string) string {
	text, err := os.ReadFile(file)
	path, werr := e.folder.write("ca-apt.pem", text)
	e.err = errors.Join(e.err, err, werr)
	if e.err == nil {
		e.err = e.folder.give(path, e.folder.Apt)
	}
	return path
}

// environment is an environment under construction.
type environment struct {
	env         []string
	folder      *Folder
	certificate []byte
	roots       Roots
	made        map[string]string // path of the new file by the file that it extends
	kept        []Limit
	err         error
}

func (e *environment) get(name string) string {
	for _, v := range slices.Backward(e.env) {
		if n, value, _ := strings.Cut(v, "="); n == name {
			return value
		}
	}
	return ""
}

func (e *environment) set(name, value string) {
	e.env = slices.DeleteFunc(e.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	e.env = append(e.env, name+"="+value)
}

// noProxy returns the user's exceptions and the local hosts.
func (e *environment) noProxy() string {
	given := e.get("no_proxy")
	if given == "" {
		given = e.get("NO_PROXY")
	}
	if given == "" || given == "*" { // a user who exempts everything from another proxy wants this one
		return local
	}
	return given + "," + local
}

// bundle returns the path of a file with the certificates of another file, "" for none, and the new certificate.
func (e *environment) bundle(of string) string {
	if path, ok := e.made[of]; ok {
		return path
	}
	var text []byte
	if of != "" {
		var err error
		if text, err = os.ReadFile(of); err != nil {
			return of // programs cannot read it, either
		}
	}
	path, err := e.folder.write("ca-"+strconv.Itoa(len(e.made))+".pem", text, e.certificate)
	e.err = errors.Join(e.err, err)
	if e.made == nil {
		e.made = map[string]string{}
	}
	e.made[of] = path
	return path
}

// config sets a variable to a changed copy of the configuration file that it names, or of usual.
func (e *environment) config(name, usual string, change func(string) string) {
	if given := e.get(name); given != "" {
		usual = given
	}
	var text []byte
	if usual != "" {
		var err error
		if text, err = os.ReadFile(usual); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	path, err := e.folder.write(strings.ToLower(name), []byte(change(string(text))))
	e.err = errors.Join(e.err, err)
	e.set(name, path)
}
