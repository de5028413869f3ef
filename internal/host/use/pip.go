package use

import (
	"os"
	"strings"
)

// pip sets the gateway as its index. Its default is that of "pip help install", --index-url.
func pip(p *plan) error {
	path, err := p.pipFile()
	if err != nil {
		return err
	}
	elsewhere, err := p.pipIndexElsewhere(path)
	if err != nil {
		return err
	}
	if v := p.Getenv("PIP_INDEX_URL"); v != "" {
		p.note("PIP_INDEX_URL is set in this shell and overrides the file")
	}
	return p.change(path, func(text string, l layout) ([]edit, error) {
		var edits []edit
		found, header := false, -1
		section, key := "", ""
		for _, line := range linesOf(text) {
			trimmed := strings.TrimSpace(line.text)
			switch {
			case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
				continue
			case trimmed[0] == '[':
				section, key = strings.ToLower(strings.Trim(trimmed, "[] ")), ""
				if section == "global" && header < 0 {
					header = line.at + len(line.text)
				}
				continue
			case line.text[0] != ' ' && line.text[0] != '\t': // otherwise it continues the previous line
				key = strings.ToLower(strings.TrimSpace(line.text[:max(strings.IndexAny(line.text, "=:"), 0)]))
			}
			if key != "index-url" && key != "extra-index-url" {
				continue
			}
			more, err := p.redirected(line, "simple")
			if err != nil {
				return nil, err
			}
			edits = append(edits, more...)
			found = found || section == "global" && key == "index-url"
		}
		for i, at := range p.checks { // the list of all projects is too large to request
			p.checks[i] = strings.TrimSuffix(at, "/") + "/pip/"
		}
		if found && len(p.Upstreams) == 0 {
			return edits, nil
		}
		if found {
			return nil, errNamed
		}
		upstream, err := p.onlyOne(elsewhere, "https://pypi.org/simple")
		if err != nil {
			return nil, err
		}
		at, ok := p.through("simple", upstream)
		if !ok {
			return nil, notHTTPS(upstream)
		}
		p.checks = append([]string{at + "/pip/"}, p.checks...)
		setting := []string{p.comment(), "index-url = " + at + "/"}
		if header < 0 {
			return append(edits, l.appended(text, append([]string{"[global]"}, setting...)...)), nil
		}
		added := edit{At: header, New: l.newline + strings.Join(setting, l.newline)}
		for i, e := range edits {
			if e.At > added.At {
				return append(append(append([]edit{}, edits[:i]...), added), edits[i:]...), nil
			}
		}
		return append(edits, added), nil
	})
}

// pipFile returns the file that "pip config set" would write for this user.
func (p *plan) pipFile() (string, error) {
	if f := p.Getenv("PIP_CONFIG_FILE"); f != "" && f != os.DevNull {
		return f, nil
	}
	path := p.config("pip", "pip.conf")
	legacy := p.home(".pip", "pip.conf")
	_, exists, err := p.before(path)
	if err != nil || exists {
		return path, err
	}
	if _, exists, err = p.before(legacy); exists {
		return legacy, err
	}
	return path, err
}

// pipIndexElsewhere returns the index in the system's settings, or "" if there is none.
func (p *plan) pipIndexElsewhere(path string) (index string, err error) {
	for _, other := range []string{p.system("/etc/pip.conf"), p.system("/etc/xdg/pip/pip.conf")} {
		if other == path {
			continue
		}
		text, _ := readAny(other)
		global := false
		for _, line := range linesOf(text) {
			trimmed := strings.TrimSpace(line.text)
			if strings.HasPrefix(trimmed, "[") {
				global = strings.EqualFold(strings.Trim(trimmed, "[] "), "global")
			}
			if name, value, ok := strings.Cut(trimmed, "="); ok && global && strings.TrimSpace(name) == "index-url" {
				index = strings.TrimSpace(value)
			}
		}
	}
	return index, nil
}
