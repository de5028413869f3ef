package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/docs"
)

// TestDocumentedCommands: every tributary command line in the documentation, including those that no test can run, uses existing
// commands, flags and values; and every piece of configuration is valid.
func TestDocumentedCommands(t *testing.T) {
	for _, wrong := range []string{"tributary gte URL", "tributary get --resum URL", "x | tributary get --within soon URL", "tributary relay", "sudo tributary links a"} {
		if err := accepts(t, docs.Invocations(wrong, "tributary")[0], true); err == nil {
			t.Errorf("%s: accepted", wrong)
		}
	}
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	lines, spans, pieces := 0, 0, 0
	for _, p := range pages {
		for _, b := range docs.Blocks(p.Text) {
			if b.Language == "toml" {
				pieces++
				if _, err := config.Parse(b.Text); err != nil {
					t.Errorf("%s:%d: %v", p.Path, b.Line, err)
				}
			}
			if !b.IsCommands() {
				continue
			}
			for _, c := range b.Commands() {
				for _, args := range docs.Invocations(c, "tributary") {
					lines++
					if err := accepts(t, args, true); err != nil {
						t.Errorf("%s:%d: %s: %v", p.Path, b.Line, c, err)
					}
				}
			}
		}
		for n, all := range docs.Spans(p.Text) {
			for _, s := range all {
				if !strings.HasPrefix(s, "tributary ") && !strings.HasPrefix(s, "sudo tributary ") {
					continue
				}
				for _, args := range docs.Invocations(s, "tributary") {
					spans++
					if err := accepts(t, args, false); err != nil {
						t.Errorf("%s:%d: %s: %v", p.Path, n, s, err)
					}
				}
			}
		}
	}
	t.Logf("%d command lines, %d in the text, %d pieces of configuration", lines, spans, pieces)
	if lines < 80 || spans < 50 || pieces < 8 {
		t.Errorf("only %d command lines, %d in the text, %d pieces of configuration", lines, spans, pieces)
	}
}

// accepts parses a command line without running it. whole reports whether it has all its arguments.
func accepts(t *testing.T, args []string, whole bool) error {
	t.Helper()
	var out bytes.Buffer
	a := &app{version: "v9", rawStdout: &out, rawStderr: &out, getenv: func(string) string { return "" }}
	a.stdout, a.stderr = &printable{to: &out}, &printable{to: &out}
	started := false
	return docs.Accepts(a.root(&started), args, whole)
}
