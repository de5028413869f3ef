package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestListing checks the app's description for F-Droid against its limits, and that the release has its changelog.
func TestListing(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "android", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?m)^CODE\s*\?= (\d+)$`).FindSubmatch(makefile)
	if code == nil {
		t.Fatal("android/Makefile names no CODE")
	}
	for name, most := range map[string]int{
		"title.txt": 50, "short_description.txt": 80, "full_description.txt": 4000, "changelogs/" + string(code[1]) + ".txt": 500,
	} {
		text, err := os.ReadFile(filepath.Join(root, "fastlane", "metadata", "android", "en-US", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := utf8.RuneCountInString(strings.TrimSpace(string(text))); n == 0 || n > most {
			t.Errorf("%s has %d characters, may have %d", name, n, most)
		}
	}
}
