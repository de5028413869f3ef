package use

import (
	"errors"
	"os"
	"strings"
)

var errNamed = errors.New("it already names a server to download from: change that instead of using --upstream, and run this again")

// redirected returns the edits that redirect the https URLs in a line to the gateway.
func (p *plan) redirected(l line, prefix string) (edits []edit, err error) {
	for at := 0; ; {
		i := strings.Index(l.text[at:], "https://")
		if i < 0 {
			return edits, nil
		}
		at += i
		end := at
		for end < len(l.text) && !strings.ContainsRune(" \t\"',|;#]<>", rune(l.text[end])) {
			end++
		}
		old := l.text[at:end]
		if at > 0 && l.text[at-1] == '+' { // mirror+https: a method of apt that reads a list
			p.note("left alone: %s", masked(l.text))
		} else if to, ok := p.through(prefix, old); ok {
			edits = append(edits, edit{At: l.at + at, Old: old, New: to})
			p.checks = append(p.checks, to)
		} else {
			p.note("not changed, since it is not an https URL that the gateway can replace: %s", masked(old))
		}
		at = end
	}
}

// readAny returns the content of a file that is only read, whoever owns it; "" if it cannot be read.
func readAny(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", false
	}
	b, err := os.ReadFile(path)
	return string(b), err == nil
}

// lastValue returns the value of the last line "key SEPARATOR value" in a text.
func lastValue(text, key, separator string) (value string) {
	for _, l := range linesOf(text) {
		if name, v, ok := strings.Cut(l.text, separator); ok && strings.TrimSpace(name) == key {
			value = strings.TrimSpace(v)
		}
	}
	return value
}
