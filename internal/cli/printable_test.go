package cli

import (
	"bytes"
	"errors"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"plain, two\n\tlines\n": "plain, two\n\tlines\n",
		"grüße, 日本, 👩\u200d👩, e\u0301": "grüße, 日本, 👩\u200d👩, e\u0301",
		"\ufffd":                         "\ufffd", // an ordinary character
		"\x00\a\b\v\f\r\x1b\x1f":         `\u0000\u0007\u0008\u000b\u000c\u000d\u001b\u001f`,
		"\x7f\u0080\u009b\u009f\u00a0":   `\u007f\u0080\u009b\u009f` + "\u00a0",
		"\u061c\u200e\u200f\u202a\u202e": `\u061c\u200e\u200f\u202a\u202e`,
		"\u2066\u2069":                   `\u2066\u2069`,
		"\x9b2K \xff \xc3( \xe6\x97 end": `\x9b2K \xff \xc3( \xe6\x97 end`,
		"cut \xe6\x97":                   `cut \xe6\x97`,
		"\xed\xa0\x80 \xc0\x9b":          `\xed\xa0\x80 \xc0\x9b`, // a surrogate, and ESC in too many bytes
	} {
		if got := shown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		text, want = text+"\n", want+"\n"
		for first := range len(text) + 1 {
			for second := first; second <= len(text); second++ {
				var out bytes.Buffer
				p := &printable{to: &out}
				for _, b := range []string{text[:first], text[first:second], text[second:]} {
					if n, err := p.Write([]byte(b)); n != len(b) || err != nil {
						t.Errorf("%d of %d bytes, %v", n, len(b), err)
					}
				}
				if out.String() != want {
					t.Errorf("%q cut at %d and %d: %q, want %q", text, first, second, &out, want)
				}
			}
		}
	}
	full := errors.New("full")
	if _, err := (&printable{to: failing{full}}).Write([]byte("x")); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// failing is a writer that always fails.
type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
