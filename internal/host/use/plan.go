package use

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Settings are the inputs of a plan.
type Settings struct {
	Gateway string // "host:port"
	// named by the user: URLs, or hosts of registries; none = those of the program's settings
	Upstreams []string
	Getenv    func(string) string // HOME must be set
	UID       int
	Root      string // prefix of the system's paths, for tests
	Force     bool   // also if the program then accepts servers that it would refuse
}

// plan is what must be done for a program.
type plan struct {
	Settings
	program string
	before  func(path string) (text string, exists bool, err error) // content of files without earlier edits
	done    map[string][]edit                                       // earlier edits, by path
	files   []planned
	hosts   []string // hosts that the gateway must be able to fetch from
	checks  []string // URLs at the gateway; one of them is fetched to check that it works
	notes   []string // for the user
}

// planned is a file with its edits.
type planned struct {
	path   string
	text   string // content before the edits
	exists bool
	edits  []edit
}

// home returns a path below the user's home.
func (p *plan) home(parts ...string) string {
	return filepath.Join(append([]string{p.Getenv("HOME")}, parts...)...)
}

// config returns a path in the user's settings folder.
func (p *plan) config(parts ...string) string {
	if dir := p.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(append([]string{dir}, parts...)...)
	}
	return p.home(append([]string{".config"}, parts...)...)
}

// system returns a path of the system, below Root.
func (s Settings) system(path string) string { return filepath.Join(s.Root, path) }

// needRoot returns an error if the user is not root, for programs with system-wide settings.
func (p *plan) needRoot() error {
	if p.UID == 0 {
		return nil
	}
	return fmt.Errorf("the settings of %s are system-wide: run sudo tributary use %[1]s", p.program)
}

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// ask adds a host that the gateway must fetch from.
func (p *plan) ask(host string) {
	if host = strings.ToLower(strings.TrimSuffix(host, ":443")); !slices.Contains(p.hosts, host) {
		p.hosts = append(p.hosts, host)
	}
}

// through returns the gateway's address for an https URL, below a prefix of the gateway such as "https", and lets the
// gateway fetch from its host. ok is false if the gateway cannot fetch the URL.
func (p *plan) through(prefix, upstream string) (at string, ok bool) {
	u, err := url.Parse(upstream)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	p.ask(u.Host)
	rest := strings.TrimPrefix(upstream, "https://") // as written: it may contain variables of the program
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user = authority[:i+1]
	}
	return "http://" + user + p.Gateway + "/" + prefix + "/" + strings.TrimSuffix(strings.ToLower(u.Host), ":443") +
		path, true
}

// own reports whether a URL leads to the gateway.
func (p *plan) own(u string) bool {
	return strings.Contains(u, "//"+p.Gateway+"/") || strings.Contains(u, "@"+p.Gateway+"/")
}

// change plans edits of a file.
func (p *plan) change(path string, make func(text string, l layout) ([]edit, error)) error {
	text, exists, err := p.before(path)
	if err != nil {
		return err
	}
	l, err := layoutOf(path, text)
	if err != nil {
		return err
	}
	edits, err := make(text, l)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(edits) > 0 {
		p.files = append(p.files, planned{path, text, exists, edits})
	}
	return nil
}

// create plans a file that belongs to Tributary.
func (p *plan) create(path string, lines ...string) error {
	return p.change(path, func(text string, l layout) ([]edit, error) {
		if _, own := p.done[path]; text != "" && !own {
			return nil, fmt.Errorf("it already exists, and Tributary did not write it: move it away")
		}
		return []edit{l.appended(text, append([]string{p.comment()}, lines...)...)}, nil
	})
}

// add plans lines to add at the end of a file.
func (p *plan) add(path string, lines ...string) error {
	return p.change(path, func(text string, l layout) ([]edit, error) {
		return []edit{l.appended(text, append([]string{p.comment()}, lines...)...)}, nil
	})
}

// comment returns the line that says who wrote the following lines.
func (p *plan) comment() string {
	return "# Written by tributary use " + p.program + "; tributary use " + p.program + " --undo takes it out."
}

// upstreams returns the upstreams named by the user, otherwise given, otherwise the program's own.
func (p *plan) upstreams(given []string, own ...string) []string {
	switch {
	case len(p.Upstreams) > 0:
		return p.Upstreams
	case len(given) > 0:
		return given
	}
	return own
}

// onlyOne returns the upstream of a program that can have only one.
func (p *plan) onlyOne(given, own string) (string, error) {
	if len(p.Upstreams) > 1 {
		return "", fmt.Errorf("%s downloads from only one server: name one --upstream", p.program)
	}
	var set []string
	if given != "" {
		set = []string{given}
	}
	upstream := strings.TrimSuffix(p.upstreams(set, own)[0], "/")
	if strings.ContainsFunc(upstream, notInURL) { // it is written into files that shells and other programs read
		return "", fmt.Errorf("%s has characters that a URL in settings cannot have", masked(upstream))
	}
	return upstream, nil
}

func notInURL(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
		!strings.ContainsRune("-._~:/@%+=[]", c)
}

// notHTTPS returns the error for a URL that the gateway does not fetch.
func notHTTPS(u string) error {
	return fmt.Errorf("%s is not an https URL without a query, which the gateway needs; for plain http, use the proxy",
		masked(u))
}
