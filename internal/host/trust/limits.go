package trust

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limit is a setting with which a user limits whom a program trusts, or by which the program proves who the user is.
type Limit struct {
	Name   string // of the variable, or of the key
	File   string // in which the key is; "" for a variable
	Value  string // path of a file or folder, as written
	Client bool   // it names a client certificate
}

// String names the setting.
func (l Limit) String() string {
	if l.File == "" {
		return l.Name
	}
	return l.Name + " in " + l.File
}

// program says where a program looks for such settings. In patterns of files, ~ is the user's home, and ~config the
// folder of settings below it.
type program struct {
	authorities []string       // variables that name a file of authorities
	clients     []string       // variables that name a client certificate
	files       []string       // patterns
	keys        *regexp.Regexp // matches a line with such a setting: its name, its value
	client      string         // what the name of a key has if it is for a client certificate
	exist       []string       // patterns of files that are such settings by being there
}

// wgetKeys are those of wget and wget2.
var wgetKeys = regexp.MustCompile(`(?i)^\s*(ca[-_]?directory|ca[-_]?certificate)\s*=\s*(\S+)`)

// programs is the one list of such settings: of the programs that `tributary use` changes, and of those whose settings
// a variable of Environment would override.
var programs = map[string]program{
	"apt": {
		files:  []string{"/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*"},
		keys:   regexp.MustCompile(`(?i)^\s*(?:[^/#\s].*?)??\b(CaInfo|CaPath|IssuerCert|SslCert|SslKey)\s+"([^"]+)"`),
		client: "ssl",
	},
	"brew": {authorities: []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE"}},
	"conda": {
		authorities: []string{"CONDA_SSL_VERIFY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"},
		clients:     []string{"CONDA_CLIENT_SSL_CERT"},
		files: []string{
			"/etc/conda/.condarc", "/etc/conda/condarc", "/etc/conda/condarc.d/*", "/opt/conda/.condarc", "~/.condarc",
			"~/.conda/.condarc", "~/.conda/condarc", "~/.conda/condarc.d/*", "~config/conda/.condarc",
			"~config/conda/condarc",
		},
		keys:   regexp.MustCompile(`^\s*(ssl_verify|client_ssl_cert)\s*:\s*["']?([^\s"'#]+)`),
		client: "client",
	},
	"aria2": {
		files: []string{"~/.aria2/aria2.conf", "~config/aria2/aria2.conf"},
		keys:  regexp.MustCompile(`^\s*(ca-certificate)\s*=\s*(\S+)`),
	},
	"containerd": {
		files:  []string{"/etc/containerd/certs.d/*/hosts.toml"},
		keys:   regexp.MustCompile(`^\s*(ca|client)\s*=\s*\[*\s*["']([^"']+)`),
		client: "client",
	},
	"dnf": {
		files:  []string{"/etc/dnf/dnf.conf", "/etc/yum.repos.d/*.repo"},
		keys:   regexp.MustCompile(`^\s*(sslcacert|sslclientcert)\s*=\s*(\S+)`),
		client: "client",
	},
	"docker": {exist: []string{"/etc/docker/certs.d/*/*.crt", "/etc/docker/certs.d/*/*.cert"}, client: ".cert"},
	"git": {
		files: []string{
			"/etc/gitconfig", "~config/git/config", "~/.gitconfig", "$GIT_CONFIG_SYSTEM", "$GIT_CONFIG_GLOBAL",
			"$PWD/.git/config",
		},
		keys: regexp.MustCompile(`(?i)^\s*(sslCAInfo|sslCAPath)\s*=\s*"?([^"\s]+)`),
	},
	"go": {authorities: []string{"SSL_CERT_FILE", "SSL_CERT_DIR"}},
	"hf": {authorities: []string{"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}},
	"hg": {
		files: []string{
			"/etc/mercurial/hgrc", "/etc/mercurial/hgrc.d/*.rc", "~/.hgrc", "~config/hg/hgrc", "$HGRCPATH",
			"$PWD/.hg/hgrc",
		},
		keys: regexp.MustCompile(`^\s*(cacerts)\s*=\s*(\S+)`),
	},
	"lftp": {
		files: []string{
			"/etc/lftp.conf", "~/.lftprc", "~/.lftp/rc", "~config/lftp/rc", "$LFTP_HOME/rc",
		},
		keys: regexp.MustCompile(`^\s*set\s+"?(ssl:ca-file|ssl:ca-path)(?:/\S+)?"?\s+"?([^"\s;]+)`),
	},
	"links": {
		files: []string{"~/.links2/links.cfg", "~/.links/links.cfg"},
		keys:  regexp.MustCompile(`^\s*(https?_proxy|socks_proxy)\s+"([^"]+)`),
	},
	"nix": {
		authorities: []string{"NIX_SSL_CERT_FILE"},
		files:       []string{"/etc/nix/nix.conf", "~config/nix/nix.conf"},
		keys:        regexp.MustCompile(`^\s*(ssl-cert-file)\s*=\s*(\S+)`),
	},
	"openssl": {authorities: []string{"SSL_CERT_DIR"}},
	"npm": {
		authorities: []string{"npm_config_cafile", "NPM_CONFIG_CAFILE"},
		files: []string{
			"/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc", "/usr/share/nodejs/npm/npmrc",
			"~/.npmrc", "$PWD/.npmrc", "$NPM_CONFIG_USERCONFIG",
		},
		keys: regexp.MustCompile(`^\s*(cafile)\s*=\s*"?([^"\s;#]+)`),
	},
	"perl": {authorities: []string{"PERL_LWP_SSL_CA_FILE", "HTTPS_CA_FILE", "PERL_LWP_SSL_CA_PATH", "HTTPS_CA_DIR"}},
	"php": {
		files: []string{
			"/etc/php.ini", "/etc/php.d/*.ini", "/etc/php/*/cli/php.ini", "/etc/php/*/cli/conf.d/*.ini",
			"/etc/php/php.ini", "/etc/php/conf.d/*.ini", "/usr/local/etc/php/php.ini",
			"/usr/local/etc/php/conf.d/*.ini", "$PHPRC", "$PHPRC/php.ini",
		},
		keys: regexp.MustCompile(`(?i)^\s*(openssl\.cafile|openssl\.capath|curl\.cainfo)\s*=\s*"?([^"\s;]+)`),
	},
	"pip": {
		authorities: []string{"PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"},
		clients:     []string{"PIP_CLIENT_CERT"},
		files: []string{
			"/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~config/pip/pip.conf",
			"$PIP_CONFIG_FILE", "$VIRTUAL_ENV/pip.conf",
		},
		keys:   regexp.MustCompile(`(?i)^\s*(cert|client[-_]cert)\s*[=:]\s*(\S+)`),
		client: "client",
	},
	"podman": {
		exist: []string{
			"/etc/containers/certs.d/*/*.crt", "/etc/containers/certs.d/*/*.cert", "~config/containers/certs.d/*/*.crt",
			"~config/containers/certs.d/*/*.cert", "/etc/docker/certs.d/*/*.crt", "/etc/docker/certs.d/*/*.cert",
		},
		client: ".cert",
	},
	"rustup": {authorities: []string{"SSL_CERT_FILE", "SSL_CERT_DIR"}},
	"wget": {
		files: []string{"/etc/wgetrc", "~/.wgetrc", "$WGETRC"},
		keys:  wgetKeys,
	},
	"wget2": {
		files: []string{"/etc/wget2rc", "~/.wget2rc", "~config/wget/wget2rc", "$WGET2RC", "$SYSTEM_WGET2RC"},
		keys:  wgetKeys,
	},
}

// words are values of settings that name no file.
var words = []string{"true", "false", "yes", "no", "on", "off", "1", "0", "truststore"}

// Limits returns the settings of a program, variables first, then those in files. root is the prefix of the system's
// paths.
func Limits(name string, getenv func(string) string, root string) (all []Limit) {
	p := programs[name]
	for _, v := range p.authorities {
		all = append(all, Limit{Name: v, Value: getenv(v)})
	}
	for _, v := range p.clients {
		all = append(all, Limit{Name: v, Value: getenv(v), Client: true})
	}
	for _, file := range matching(p.files, getenv, root) {
		text, _ := os.ReadFile(file) // mostly there is none
		for line := range strings.Lines(string(text)) {
			if m := p.keys.FindStringSubmatch(line); m != nil {
				all = append(all, Limit{m[1], file, m[2], p.isClient(m[1])})
			}
		}
	}
	for _, file := range matching(p.exist, getenv, root) {
		all = append(all, Limit{filepath.Base(file), filepath.Dir(file), file, p.isClient(file)})
	}
	return slices.DeleteFunc(all, func(l Limit) bool {
		return l.Value == "" ||
			slices.Contains(words, strings.ToLower(l.Value))
	})
}

func (p program) isClient(name string) bool {
	return p.client != "" && strings.Contains(strings.ToLower(name), p.client)
}

// matching returns the files that match patterns.
func matching(patterns []string, getenv func(string) string, root string) (files []string) {
	for _, pattern := range patterns {
		switch {
		case strings.HasPrefix(pattern, "~config/"):
			dir := getenv("XDG_CONFIG_HOME")
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(getenv("HOME"), ".config")
			}
			pattern = filepath.Join(dir, pattern[len("~config/"):])
		case strings.HasPrefix(pattern, "~/"):
			pattern = filepath.Join(getenv("HOME"), pattern[len("~/"):])
		case strings.HasPrefix(pattern, "$"):
			variable, rest, _ := strings.Cut(pattern[1:], "/")
			if getenv(variable) == "" {
				continue
			}
			pattern = filepath.Join(getenv(variable), rest)
		default:
			pattern = filepath.Join(root, pattern)
		}
		found, _ := filepath.Glob(pattern) // fails only for a bad pattern
		files = append(files, found...)
	}
	return files
}

// Narrower returns those limits which a party that verifies servers with r does not keep: files without all of its
// authorities, and client certificates.
func (r Roots) Narrower(all []Limit) []Limit {
	return slices.DeleteFunc(slices.Clone(all), func(l Limit) bool { return !l.Client && r.withinFile(l.Value) })
}
