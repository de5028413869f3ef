package gateway

import "strings"

// homebrew serves the requests of Homebrew when HOMEBREW_ARTIFACT_DOMAIN is /brew/HOST: bottles from the registry HOST,
// and everything else by its whole URL.
func (x *exchange) homebrew(t target) *failure {
	if rest, ok := strings.CutPrefix(t.path, "/https://"); ok {
		return x.at(rest, x.plain)
	}
	return x.plain(t)
}
