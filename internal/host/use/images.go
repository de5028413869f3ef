package use

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// dockerRegistry is the registry of images whose names do not contain one; dockerHost is its server.
const (
	dockerRegistry = "docker.io"
	dockerHost     = "registry-1.docker.io"
)

// registries returns the registries whose images the gateway downloads.
func (p *plan) registries() (all []string, err error) {
	for _, r := range p.upstreams(nil, dockerRegistry) {
		r = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(r, "https://"), "/"))
		if r == "" || strings.ContainsAny(r, "/@ \t\"'[]\\?#") || strings.HasPrefix(r, "http:") {
			return nil, fmt.Errorf("%q is not a registry name: want one like --upstream ghcr.io", r)
		}
		p.ask(r)
		host := r
		if r == dockerRegistry {
			host = dockerHost
			p.ask(host)
		}
		p.checks = append(p.checks, "http://"+p.Gateway+"/https/"+host+"/v2/")
		all = append(all, r)
	}
	return all, nil
}

// docker sets mirrors in both ways: Docker with containerd's image store reads hosts.toml, other versions read
// daemon.json.
func docker(p *plan) error {
	if err := p.needRoot(); err != nil {
		return err
	}
	all, err := p.registries()
	if err == nil {
		err = p.hostsFiles(p.system("/etc/docker/certs.d"), all)
	}
	if err != nil || !slices.Contains(all, dockerRegistry) {
		return err
	}
	p.note("to apply this, run systemctl reload docker (not needed with containerd's image store)")
	return p.change(p.system("/etc/docker/daemon.json"), func(text string, l layout) ([]edit, error) {
		return mirrorEdit(text, l, "http://"+p.Gateway)
	})
}

// containerd sets mirrors, which nerdctl and the Kubernetes interface read.
func containerd(p *plan) error {
	if err := p.needRoot(); err != nil {
		return err
	}
	if text, _ := readAny(p.system("/etc/containerd/config.toml")); !strings.Contains(text, "config_path") {
		p.note(`Kubernetes and crictl read this folder only if /etc/containerd/config.toml says, below the table of the registry: ` +
			`config_path = "/etc/containerd/certs.d"; nerdctl and ctr --hosts-dir do anyway`)
	}
	all, err := p.registries()
	if err != nil {
		return err
	}
	return p.hostsFiles(p.system("/etc/containerd/certs.d"), all)
}

// hostsFiles plans a hosts.toml for each registry. The gateway comes first; the registry itself is asked when the
// gateway fails.
func (p *plan) hostsFiles(dir string, registries []string) error {
	for _, r := range registries {
		err := p.change(filepath.Join(dir, r, "hosts.toml"), func(text string, l layout) ([]edit, error) {
			table := []string{p.comment(), `[host."http://` + p.Gateway + `"]`, `  capabilities = ["pull", "resolve"]`}
			for _, line := range linesOf(text) {
				if strings.HasPrefix(strings.TrimSpace(line.text), "[") { // hosts are asked in the order of the file
					return []edit{{At: line.at, New: strings.Join(table, l.newline) + l.newline}}, nil
				}
			}
			return []edit{l.appended(text, table...)}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mirrorEdit adds a mirror to a daemon.json, before others.
func mirrorEdit(text string, l layout, mirror string) ([]edit, error) {
	body := strings.TrimPrefix(text, byteOrderMark)
	start := len(text) - len(body)
	quoted := `"` + mirror + `"`
	if strings.TrimSpace(body) == "" {
		return []edit{l.appended(text, `{`, `  "registry-mirrors": [`+quoted+`]`, `}`)}, nil
	}
	d := json.NewDecoder(strings.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNotJSON
	}
	first := d.InputOffset()
	empty := !d.More()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errNotJSON
		}
		if key == "registry-mirrors" {
			if t, err := d.Token(); err != nil || t != json.Delim('[') {
				return nil, fmt.Errorf(`"registry-mirrors" is not a list`)
			}
			if d.More() {
				quoted += ", "
			}
			return []edit{{At: start + int(d.InputOffset()), New: quoted}}, nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, errNotJSON
		}
	}
	if t, err := d.Token(); err != nil || t != json.Delim('}') {
		return nil, errNotJSON
	}
	added := l.newline + `  "registry-mirrors": [` + quoted + `]`
	if !empty {
		added += ","
		if rest := body[first:]; rest != "" && !unicode.IsSpace(rune(rest[0])) {
			added += l.newline + "  "
		}
	}
	return []edit{{At: start + int(first), New: added}}, nil
}

var errNotJSON = fmt.Errorf("it is not valid JSON: correct it first")

// podmanRegistry is a [[registry]] of registries.conf (containers-registries.conf(5)).
type podmanRegistry struct {
	Prefix             string           `toml:"prefix,omitempty"`
	Location           string           `toml:"location,omitempty"`
	Insecure           bool             `toml:"insecure,omitempty"`
	Blocked            bool             `toml:"blocked,omitempty"`
	MirrorByDigestOnly bool             `toml:"mirror-by-digest-only,omitempty"`
	Mirror             []map[string]any `toml:"mirror,omitempty"`
}

func (r podmanRegistry) name() string {
	if r.Prefix != "" {
		return r.Prefix
	}
	return r.Location
}

// podman sets mirrors in its own file. A later file replaces the settings of a registry in earlier files, so these are
// copied.
func podman(p *plan) error {
	all, err := p.registries()
	if err != nil {
		return err
	}
	system := p.system("/etc/containers")
	dir := system
	if p.UID != 0 {
		dir = p.config("containers")
	}
	own := filepath.Join(dir, "registries.conf.d", "990-tributary.conf")
	var out strings.Builder
	for _, name := range all {
		r := podmanRegistry{Prefix: name, Location: name}
		for _, from := range []string{system, dir} {
			files, _ := filepath.Glob(filepath.Join(from, "registries.conf.d", "*.conf"))
			for _, path := range append([]string{filepath.Join(from, "registries.conf")}, files...) {
				if path == own {
					continue
				}
				if r, err = podmanHas(path, name, r); err != nil {
					return err
				}
			}
		}
		if r.Blocked {
			return fmt.Errorf("images of %s are blocked here (registries.conf)", name)
		}
		r.Mirror = append([]map[string]any{{"location": p.Gateway + "/" + name, "insecure": true}}, r.Mirror...)
		text, err := toml.Marshal(map[string][]podmanRegistry{"registry": {r}})
		if err != nil {
			return err
		}
		out.Write(text)
	}
	return p.create(own, strings.Split(strings.TrimSpace(out.String()), "\n")...)
}

// podmanHas returns the settings of a registry in a file, or those already known if the file has none.
func podmanHas(path, name string, known podmanRegistry) (podmanRegistry, error) {
	text, ok := readAny(path)
	if !ok {
		return known, nil
	}
	var has struct {
		Registry []podmanRegistry `toml:"registry"`
	}
	if _, err := toml.Decode(text, &has); err != nil {
		return known, fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range has.Registry {
		if r.name() == name {
			known = r
		}
	}
	return known, nil
}
