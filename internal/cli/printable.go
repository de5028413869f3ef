package cli

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// printable writes text for people. The text may come from servers, other users and their processes. Since a terminal
// obeys control characters, they are written as escapes like \u001b; only line breaks and tabs pass. JSON stays valid
// and keeps its meaning, since its strings have the same escapes. A printable is safe for concurrent use.
type printable struct {
	mu   sync.Mutex
	to   io.Writer
	held []byte // first bytes of a character whose rest has not arrived; a line break flushes them
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

// escape returns text with control characters and invalid bytes escaped, and separately an incomplete character at its
// end.
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

// escapeBytes appends bytes that are not text, as escapes.
func escapeBytes(out, raw []byte) []byte {
	for _, b := range raw {
		out = fmt.Appendf(out, `\x%02x`, b)
	}
	return out
}

// controls reports whether a terminal may do more with r than display it: C0, DEL, C1, and the bidirectional controls.
func controls(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// shown returns s as printable writes it.
func shown(s string) string {
	text, rest := escape([]byte(s))
	return string(escapeBytes(text, rest))
}
