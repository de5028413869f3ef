package main

import (
	"testing"

	"github.com/tributary-http/tributary/internal/docs"
)

// Every tributary-lab command line in the documentation names commands, flags and values that exist.
func TestDocumentedCommands(t *testing.T) {
	pages, err := docs.Pages("../../..")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, p := range pages {
		for _, b := range docs.Blocks(p.Text) {
			for _, c := range b.Commands() {
				for _, args := range docs.Invocations(c, "tributary-lab") {
					lines++
					if err := docs.Accepts(root(), args, true); err != nil {
						t.Errorf("%s:%d: %s: %v", p.Path, b.Line, c, err)
					}
				}
			}
		}
	}
	if lines < 10 {
		t.Errorf("%d command lines only", lines)
	}
}
