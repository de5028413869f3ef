package opening

import "strings"

// Background reports whether a request's Priority field says that nobody waits for the response: "u=7" (RFC 9218
// section 4.1).
func Background(h map[string][]string) bool {
	least := false
	for member := range strings.SplitSeq(strings.Join(h["Priority"], ","), ",") {
		member, _, _ = strings.Cut(member, ";")
		if name, value, ok := strings.Cut(strings.TrimSpace(member), "="); ok && name == "u" {
			least = value == "7" // of several members with the same name, the last one counts (RFC 8941 section 3.2)
		}
	}
	return least
}
