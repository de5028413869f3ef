package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rootFiles are the files in which systems keep the certificates that they trust, in the same order as in crypto/x509.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS
	"/etc/ssl/cert.pem",                                 // others
}

// bundles are the variables that name a file with all certificates that a program trusts. docs/RUN.md lists which program reads
// which; each was tested.
var bundles = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
}

// addition is the variable that names a file with certificates in addition to those built into a program.
const addition = "NODE_EXTRA_CA_CERTS"

// local are the hosts that programs must not request from the proxy: it rejects them.
const local = "localhost,127.0.0.1,127.0.0.0/8,::1"

// Environment returns env with variables that make programs use the proxy and trust a certificate in PEM form, in addition to
// those that they already trust. Settings of the user are kept: a variable that names a file gets a file with the same content
// and the certificate; a variable whose file cannot be read stays unchanged.
func Environment(env []string, f *Folder, proxy string, certificate []byte) ([]string, error) {
	e := environment{env: slices.Clone(env), folder: f, certificate: certificate}
	for _, name := range []string{"http_proxy", "https_proxy"} {
		e.set(name, proxy)
		e.set(strings.ToUpper(name), proxy)
	}
	e.set("no_proxy", e.noProxy())
	e.set("NO_PROXY", e.get("no_proxy"))
	e.set("NODE_USE_ENV_PROXY", "1") // Node 24, and 22.21
	system, err := e.system()
	if err != nil {
		return nil, err
	}
	for _, name := range bundles {
		if of := e.get(name); of == "" || of == system {
			e.bundle(name, system)
		} else {
			e.bundle(name, of)
		}
	}
	e.bundle(addition, e.get(addition))
	bundle := e.get(bundles[0])
	e.config("WGETRC", filepath.Join(e.get("HOME"), ".wgetrc"), "ca_certificate = "+bundle)
	if f.Apt != 0 {
		bundle = e.forApt(bundle)
	}
	e.config("APT_CONFIG", "", "Acquire::https::CAInfo "+strconv.Quote(bundle)+";")
	return e.env, e.err
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
	made        map[string]string // path of the new file by the file that it extends
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

// system returns the path of the file with the system's certificates.
func (e *environment) system() (string, error) {
	files := rootFiles
	if own := e.get("SSL_CERT_FILE"); own != "" {
		files = []string{own}
	}
	for _, path := range files {
		if is, err := os.Stat(path); err == nil && is.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("cannot find the certificates that this system trusts: looked for %s; "+
		"install ca-certificates, or name a file with SSL_CERT_FILE", strings.Join(files, ", "))
}

// bundle sets a variable to a file with the certificates of another file, "" for none, and the new certificate.
func (e *environment) bundle(name, of string) {
	if path, ok := e.made[of]; ok {
		e.set(name, path)
		return
	}
	var text []byte
	if of != "" {
		var err error
		if text, err = os.ReadFile(of); err != nil {
			return
		}
	}
	path, err := e.folder.write("ca-"+strconv.Itoa(len(e.made))+".pem", text, e.certificate)
	e.err = errors.Join(e.err, err)
	if e.made == nil {
		e.made = map[string]string{}
	}
	e.made[of] = path
	e.set(name, path)
}

// config sets a variable to a copy of the configuration file that it names, or of usual, with an additional line.
func (e *environment) config(name, usual, line string) {
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
	path, err := e.folder.write(strings.ToLower(name), text, []byte(line+"\n"))
	e.err = errors.Join(e.err, err)
	e.set(name, path)
}
