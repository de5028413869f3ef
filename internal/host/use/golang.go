package use

import (
	"path/filepath"
	"strings"
)

// golang puts the gateway before each proxy of GOPROXY: go asks the proxy itself when the gateway fails. Its default is
// that of "go help module-auth".
func golang(p *plan) error {
	path := p.Getenv("GOENV")
	if path == "off" {
		return errNoFile("GOENV=off")
	}
	if !filepath.IsAbs(path) {
		path = p.config("go", "env")
	}
	if p.Getenv("GOPROXY") != "" {
		p.note("GOPROXY is set in this shell and overrides the file")
	}
	return p.change(path, func(text string, l layout) ([]edit, error) {
		value := lastValue(text, "GOPROXY", "=")
		if value == "" {
			value = "https://proxy.golang.org,direct"
		}
		if len(p.Upstreams) > 0 {
			upstream, err := p.onlyOne("", "")
			if err != nil {
				return nil, err
			}
			value = upstream + ",direct"
		}
		var b strings.Builder
		for rest := value; rest != ""; {
			end := strings.IndexAny(rest, ",|")
			if end < 0 {
				end = len(rest)
			}
			if at, ok := p.through("https", strings.TrimSuffix(rest[:end], "/")); ok {
				b.WriteString(at + "|")
				p.checks = append(p.checks, at+"/sumdb/sum.golang.org/supported")
			}
			next := min(end+1, len(rest))
			b.WriteString(rest[:next])
			rest = rest[next:]
		}
		if len(p.hosts) == 0 {
			return nil, notHTTPS(value)
		}
		return []edit{l.appended(text, p.comment(), "GOPROXY="+b.String())}, nil
	})
}
