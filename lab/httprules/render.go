package httprules

import (
	"fmt"
	"strings"
)

const preface = `# HTTP rules

<!-- Made by "make httpdoc" from docs/http-rules.toml and the names of the tests. Do not edit. -->

The rules of HTTP, and some of caution, that the proxy obeys, each with the tests that prove it. A subtest carries the
number of its rule: ` + "`go test ./internal/front/proxy -run '/R37'`" + ` runs those of R37 in one package. A rule without a test says why.
` + "`make mutate`" + ` breaks the lines that guard the rules and sees whether the tests notice.

RFC 9110 is HTTP's semantics, RFC 9112 is HTTP/1.1, RFC 9113 is HTTP/2.
`

// Render returns the text of Document.
func (b *Rules) Render(tests Tests) string {
	var out strings.Builder
	out.WriteString(preface)
	section := ""
	for _, r := range b.Rules {
		if r.Section != section {
			section = r.Section
			fmt.Fprintf(&out, "\n## %s\n", section)
		}
		fmt.Fprintf(&out, "\n**R%d** %s *(%s)*\n", r.Number, r.Text, r.Source)
		if r.Reason != "" {
			fmt.Fprintf(&out, "- %s\n", r.Reason)
		}
		file := ""
		for _, t := range tests[r.Number] {
			if t.File != file {
				if file != "" {
					out.WriteByte('\n')
				}
				file = t.File
				fmt.Fprintf(&out, "- %s %s", t.File, t.Func)
				continue
			}
			fmt.Fprintf(&out, ", %s", t.Func)
		}
		if file != "" {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
