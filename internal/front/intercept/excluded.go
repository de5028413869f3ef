package intercept

import (
	_ "embed"
	"strings"
)

//go:embed excluded.txt
var excludedText string

// excluded returns the hosts listed in excluded.txt.
func excluded() (hosts []string) {
	for line := range strings.Lines(excludedText) {
		host, _, _ := strings.Cut(line, "#")
		if host = strings.TrimSpace(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
