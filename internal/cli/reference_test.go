package cli

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/get"
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
		for code, what := range map[int]string{
			exitOK: "done", exitFailure: "failure", exitUsage: "wrong usage", exitPortInUse: "port in use", exitPermission: "no permission",
		} {
			if row := fmt.Sprintf("| %d | %s", code, what); !strings.Contains(table, row) {
				t.Errorf("missing: %s", row)
			}
			if short := fmt.Sprintf("%d %s", code, what); !strings.Contains(exitCodes, short) {
				t.Errorf("help lacks: %s", short)
			}
		}
		for code, what := range map[int]string{
			int(get.Network): "network", int(get.Server): "unexpected response", int(get.Trust): "TLS", int(get.File): "the file cannot be written",
		} {
			if row := fmt.Sprintf("| %d | %s", code, what); !strings.Contains(table, row) {
				t.Errorf("missing: %s", row)
			}
			short := strings.ReplaceAll(getExitCodes, "\n", " ")
			if want := fmt.Sprintf("%d %s", code, what); !strings.Contains(short, want) {
				t.Errorf("help of get lacks: %s", want)
			}
		}
	})
}
