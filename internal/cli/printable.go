package cli

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// printable writes text for people. The text may come from servers, other users and their processes, and a terminal obeys
// control characters, so they are written as escapes like \u001b; only line breaks and tabs pass. JSON stays valid and means
// the same, since its strings have the same escapes. It is safe for concurrent use.
type printable struct {
	mu   sync.Mutex
	to   io.Writer
	held []byte // the first bytes of a character whose rest has not come; a line break gets them out
}

// Write implements io.Writer.
func (p *printable) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, rest := escape(append(p.held, b...))
	p.held = rest
	if _, err := p.to.Write(text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escape returns text without control characters and invalid bytes, and the beginning of a character at its end.
func escape(text []byte) (out, rest []byte) {
	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			out = escapeBytes(out, text[:1])
		case controls(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out, text
}

// escapeBytes appends bytes that are not text.
func escapeBytes(out, raw []byte) []byte {
	for _, b := range raw {
		out = fmt.Appendf(out, `\x%02x`, b)
	}
	return out
}

// controls reports whether a terminal may do more with r than show it: C0, DEL, C1, and the bidirectional controls.
func controls(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// shown returns s as printable writes it.
func shown(s string) string {
	text, rest := escape([]byte(s))
	return string(escapeBytes(text, rest))
}
