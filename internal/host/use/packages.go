package use

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// apt redirects its https sources to the gateway. Signatures are checked as before.
func apt(p *plan) error {
	if err := p.needRoot(); err != nil {
		return err
	}
	if len(p.Upstreams) > 0 {
		return errNamed
	}
	dir := p.system("/etc/apt")
	lists, _ := filepath.Glob(filepath.Join(dir, "sources.list.d", "*.list"))
	for _, path := range append([]string{filepath.Join(dir, "sources.list")}, lists...) {
		err := p.change(path, func(text string, _ layout) (edits []edit, err error) {
			for _, l := range linesOf(text) {
				if kind, _, _ := strings.Cut(strings.TrimSpace(l.text), " "); kind != "deb" && kind != "deb-src" {
					continue
				}
				l.text, _, _ = strings.Cut(l.text, "#")
				more, err := p.redirected(l, "https")
				if err != nil {
					return nil, err
				}
				edits = append(edits, more...)
			}
			return edits, nil
		})
		if err != nil {
			return err
		}
	}
	sources, _ := filepath.Glob(filepath.Join(dir, "sources.list.d", "*.sources"))
	for _, path := range sources {
		if err := p.change(path, func(text string, _ layout) ([]edit,
			error,
		) {
			return p.fields(text, "uris", ":")
		}); err != nil {
			return err
		}
	}
	if len(p.files) == 0 {
		return errors.New("apt has no https sources; sources with plain http can use the proxy: see docs/guides/apt.md")
	}
	for i, at := range p.checks {
		p.checks[i] = strings.TrimSuffix(at, "/") + "/"
	}
	for _, auth := range []string{"auth.conf", "auth.conf.d/*"} {
		if files, _ := filepath.Glob(filepath.Join(dir, auth)); len(files) > 0 {
			p.note("passwords in /etc/apt/auth.conf are for hosts: sources that need one now need  machine http://%s/https/HOST", p.Gateway)
			break
		}
	}
	p.note("to apply this, run apt-get update")
	// Without this, a proxy for http would also be used for the gateway.
	host := p.Gateway[:strings.LastIndexByte(p.Gateway, ':')]
	return p.create(filepath.Join(dir, "apt.conf.d", "99tributary-gateway"),
		`Acquire::http::Proxy::`+strings.Trim(host, "[]")+` "DIRECT";`)
}

// fields returns the edits that redirect the URLs in the values of a key to the gateway; a value continues on indented
// lines.
func (p *plan) fields(text, key, separator string) (edits []edit, err error) {
	inside := false
	for _, l := range linesOf(text) {
		trimmed := strings.TrimSpace(l.text)
		switch {
		case trimmed == "" || trimmed[0] == '#':
			continue
		case l.text[0] != ' ' && l.text[0] != '\t':
			name, _, _ := strings.Cut(trimmed, separator)
			inside = strings.EqualFold(strings.TrimSpace(name), key)
		}
		if inside {
			more, err := p.redirected(l, "https")
			if err != nil {
				return nil, err
			}
			edits = append(edits, more...)
		}
	}
	return edits, nil
}

// dnf redirects the repositories that name their servers to the gateway.
func dnf(p *plan) error {
	if err := p.needRoot(); err != nil {
		return err
	}
	if len(p.Upstreams) > 0 {
		return errNamed
	}
	repos, _ := filepath.Glob(p.system("/etc/yum.repos.d/*.repo"))
	for _, path := range repos {
		err := p.change(path, func(text string, _ layout) ([]edit, error) {
			for _, l := range linesOf(text) {
				if name, _, ok := strings.Cut(l.text, "="); ok && slices.Contains([]string{"metalink", "mirrorlist"},
					strings.TrimSpace(name)) {
					p.note("%s has a %s, which bypasses the gateway: replace it with a baseurl, and run this again",
						path, strings.TrimSpace(name))
					break
				}
			}
			return p.fields(text, "baseurl", "=")
		})
		if err != nil {
			return err
		}
	}
	if len(p.files) == 0 {
		return errors.New("no repository in /etc/yum.repos.d names an https server by baseurl" + notes(p.notes))
	}
	// variables of dnf
	p.checks = slices.DeleteFunc(p.checks, func(at string) bool { return strings.Contains(at, "$") })
	return nil
}

func notes(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return ":\n" + strings.Join(all, "\n")
}

// conda sets the server of channels that are given by name. Channels with a URL stay unchanged.
func conda(p *plan) error {
	user := p.home(".condarc")
	text, _, err := p.before(user)
	if err != nil {
		return err
	}
	if set := lastValue(text, "channel_alias", ":"); set != "" {
		if len(p.Upstreams) > 0 {
			return errNamed
		}
		return p.change(user, func(text string, _ layout) ([]edit, error) {
			edits, err := p.fields(text, "channel_alias", ":")
			if err == nil && len(edits) == 0 {
				err = notHTTPS(set)
			}
			return edits, err
		})
	}
	upstream, err := p.onlyOne("", "https://conda.anaconda.org")
	if err != nil {
		return err
	}
	at, ok := p.through("https", upstream)
	if !ok {
		return notHTTPS(upstream)
	}
	p.checks = append(p.checks, at+"/conda-forge/noarch/repodata.json.zst")
	lines := []string{"channel_alias: " + at}
	if !strings.Contains(text, "default_channels") && len(p.Upstreams) == 0 {
		lines = append(lines, "default_channels:")
		for _, c := range []string{"main", "r"} { // conda's defaults, "conda config --describe default_channels"
			main, _ := p.through("https", "https://repo.anaconda.com/pkgs/"+c)
			lines = append(lines, "  - "+main)
		}
	}
	return p.create(p.home(".conda", "condarc.d", "tributary.yml"), lines...)
}

// nix puts the gateway before each cache: the cache itself is asked when the gateway fails.
func nix(p *plan) error {
	system := p.system("/etc/nix/nix.conf")
	path := system
	if p.UID != 0 {
		path = p.config("nix", "nix.conf")
		p.note("Nix's daemon accepts this only from users in trusted-users of /etc/nix/nix.conf")
	}
	return p.change(path, func(text string, l layout) ([]edit, error) {
		set := lastValue(text, "substituters", "=")
		if other, _ := readAny(system); set == "" && path != system {
			set = lastValue(other, "substituters", "=")
		}
		set, _, _ = strings.Cut(set, "#")
		var all []string
		for _, cache := range p.upstreams(strings.Fields(set), "https://cache.nixos.org") {
			if at, ok := p.through("https", strings.TrimSuffix(cache, "/")); ok {
				all = append(all, at)
				p.checks = append(p.checks, at+"/nix-cache-info")
			}
			all = append(all, cache)
		}
		if len(p.hosts) == 0 {
			return nil, fmt.Errorf("no cache is an https URL without a query: %s", masked(strings.Join(all, " ")))
		}
		return []edit{l.appended(text, p.comment(), "substituters = "+strings.Join(all, " "))}, nil
	})
}
