package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/get"
)

// TestReference: the documentation's statements about settings and exit codes are true.
func TestReference(t *testing.T) {
	page := func(name string) string {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Run("R74 lower-case variables", func(t *testing.T) {
		guide := page("guides/curl.md")
		for _, want := range []string{
			"http_proxy=http://127.0.0.1:8080", "https_proxy=http://127.0.0.1:8080", "no_proxy=localhost,127.0.0.0/8,::1",
		} {
			if !strings.Contains(guide, want) {
				t.Errorf("missing: %s", want)
			}
		}
	})
	t.Run("defaults", func(t *testing.T) {
		_, rest, ok := strings.Cut(page("CONFIGURATION.md"), "```toml\n")
		block, _, closed := strings.Cut(rest, "```")
		if !ok || !closed {
			t.Fatal("no TOML block")
		}
		got, err := config.Parse(block)
		if err != nil {
			t.Fatal(err)
		}
		want := config.Default()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the page says %+v\nthe defaults are %+v", got, want)
		}
		// The commented-out examples of tables are valid too.
		tables := block[strings.Index(block, "# [link."):]
		var example strings.Builder
		for line := range strings.Lines(tables) {
			example.WriteString(strings.TrimPrefix(line, "# "))
		}
		c, err := config.Parse(example.String())
		if err != nil || len(c.Link) != 2 || c.Link["office"].Upstream() == nil {
			t.Errorf("the example of a table: %+v, %v", c.Link, err)
		}
		for f := range reflect.TypeFor[config.Link]().Fields() {
			if !slices.ContainsFunc(slices.Collect(maps.Values(c.Link)), func(l config.Link) bool {
				return !reflect.ValueOf(l).FieldByIndex(f.Index).IsZero()
			}) {
				t.Errorf("the example lacks [link.NAME] %s", f.Tag.Get("toml"))
			}
		}
	})
	t.Run("exit codes", func(t *testing.T) {
		table := page("TROUBLESHOOTING.md")
		for path, all := range exits {
			for _, e := range all {
				what, _, _ := strings.Cut(e.meaning, ":")
				if row := fmt.Sprintf("| %d | %s", e.code, what); !strings.Contains(table, row) {
					t.Errorf("missing: %s", row)
				}
				command, line := strings.Fields(path)[1:], fmt.Sprintf("\n  %-3d  %s\n", e.code, e.meaning)
				if _, help, _ := invoke(t, noServe, append(command, "--help")...); !strings.Contains(help, line) {
					t.Errorf("%s --help lacks %q", path, line)
				}
			}
		}
	})
}

// TestEveryExitCodeIsListed: the sources name no exit code that no command lists. invoke checks what commands return.
func TestEveryExitCodeIsListed(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, rest, _ := strings.Cut(read("exit.go"), "\nvar commonExits")
	table, _, ok := strings.Cut(rest, "\nfunc exitsOf")
	if !ok {
		t.Fatal("no table in exit.go")
	}
	common := map[string]int{"get.Canceled": exitFailure, "get.Usage": exitUsage, "get.Permission": exitPermission}
	if int(get.Canceled) != exitFailure || int(get.Usage) != exitUsage || int(get.Permission) != exitPermission {
		t.Errorf("not the common codes: %v", common)
	}
	for _, source := range []struct{ path, pattern, prefix, in string }{
		{"exit.go", `(?m)^\t(exit[A-Z]\w+) +=`, "", table},
		{"../front/get/failure.go", `(?m)^\t(\w+) +Kind += `, "get.", table},
		{"../host/supervise/main_linux.go", `(?m)^\t(Exit\w+) += `, "supervise.", table},
		{"../core/fault/table.go", `(?m)^\t(Exit\w+) += `, "fault.", read("../front/get/failure.go")},
	} {
		found := regexp.MustCompile(source.pattern).FindAllStringSubmatch(read(source.path), -1)
		if len(found) < 3 {
			t.Errorf("%s: only %d codes", source.path, len(found))
		}
		for _, m := range found {
			name := source.prefix + m[1]
			if _, known := common[name]; !known && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(source.in) {
				t.Errorf("no command lists %s of %s", name, source.path)
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if m := regexp.MustCompile(`(coded|ended)Error\{.*\b\d+\}`).FindString(read(f)); m != "" && !strings.HasSuffix(f, "_test.go") {
			t.Errorf("%s: %s: the code has no name", f, m)
		}
	}
}

// listed fails the test if a command returned an exit code that it does not list.
func listed(t *testing.T, code int, args ...string) {
	t.Helper()
	started := false
	command, _, err := (&app{}).root(&started).Find(args)
	if err != nil {
		return
	}
	if !slices.ContainsFunc(exitsOf(command), func(e exit) bool { return e.code == code }) {
		t.Errorf("%s lacks the exit code %d in its list", command.CommandPath(), code)
	}
}
