package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-http/tributary/internal/config"
)

func TestConfigCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.toml", "# mine\n\nlisten = \"127.0.0.1:3128\"\n[link.wlan0]\nmetered = true\n")
	bad := file("bad.toml", "listn = 1\nscheduler = \"best\"\n[link.wlan0]\ndns = \"x\"\n")

	code, out, errs := invoke(t, nil, "config", "check", good)
	if code != exitOK || out != good+": ok\n" {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	code, _, errs = invoke(t, nil, "config", "check", bad)
	for _, want := range []string{bad + ":1: listn: ", "did you mean listen?", bad + ":4: [link.wlan0] dns: want a list"} {
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("code %d, %q is missing in\n%s", code, want, errs)
		}
	}
	if code, _, errs = invoke(t, nil, "config", "check", filepath.Join(dir, "none")); code != exitUsage {
		t.Errorf("a file that is missing: code %d: %s", code, errs)
	}

	for _, args := range [][]string{{"config"}, {"config", "chek"}} {
		if code, _, errs = invoke(t, nil, args...); code != exitUsage || errs == "" {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}

	code, out, errs = invoke(t, nil, "config", "show", "--config", good)
	for _, want := range []string{`listen = "127.0.0.1:3128" `, "# " + good + ":3\n", `admin = "127.0.0.1:9091" `, "# default\n", "[link.wlan0]\n"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("code %d, %q is missing in\n%s%s", code, want, out, errs)
		}
	}
	again, err := config.Load(file("again.toml", out), os.Getenv)
	if err != nil || again.Listen != "127.0.0.1:3128" || *again.Link["wlan0"].Metered != true {
		t.Errorf("what show prints loads as %+v, %v", again, err)
	}

	_, out, _ = invoke(t, nil, "config", "show", "--json", "--config", good)
	var shown struct {
		File     string
		Settings []config.Setting
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.File != good || len(shown.Settings) < 15 {
		t.Errorf("%v: %s", err, out)
	}
	if code, _, errs = invoke(t, nil, "config", "show", "--config", bad); code != exitUsage {
		t.Errorf("code %d: %s", code, errs)
	}
}

// TestCommandsAreDocumented: each command has an example, and a manual page with its exit codes and the values of its flags, which
// --help names, too.
func TestCommandsAreDocumented(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := invoke(t, nil, "man", dir); code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), ".SH NAME\n") {
			t.Errorf("%s: %v", name, err)
		}
		return string(text)
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); !f.Hidden && f.NoOptDefVal == "" && (value == "" || value != strings.ToUpper(value)) {
				t.Errorf("%s --%s %s: name the value in backquotes", c.CommandPath(), f.Name, value)
			}
		})
		if c.Hidden { // only for internal use
			return
		}
		if c.Name() == "help" {
			return // cobra's own
		}
		if c.Example == "" && c.Name() != "completion" && c.Parent().Name() != "completion" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		text := page("man1/" + pageName(c) + ".1")
		for _, e := range exitsOf(c) {
			if want := fmt.Sprintf("\n\\fB%d\\fP\n%s\n", e.code, e.meaning); !strings.Contains(text, want) {
				t.Errorf("%s: the page lacks the exit code %d", c.CommandPath(), e.code)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			if want := strings.TrimSpace("--" + f.Name + " " + value); !f.Hidden && !strings.Contains(text, want+"\\fP\n") {
				t.Errorf("%s: the page lacks %s", c.CommandPath(), want)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	started := false
	walk((&app{}).root(&started))

	if !strings.Contains(page("man1/tributary.1"), "tributary.toml(5)") {
		t.Error("tributary(1) does not refer to tributary.toml(5)")
	}
	reference := page("man5/tributary.toml.5")
	var defaults bytes.Buffer
	if err := (&config.File{Config: config.Default()}).WriteTOML(&defaults); err != nil {
		t.Fatal(err)
	}
	measuring, err := os.ReadFile("../../docs/SCHEDULERS.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(defaults.String()) {
		key, _, ok := strings.Cut(line, " = ")
		if ok && !strings.Contains(reference, "\n"+key+" = ") && !strings.Contains(string(measuring), "| `"+key+"` |") {
			t.Errorf("tributary.toml(5) lacks %s", key)
		}
	}
	if strings.Contains(reference, "](") || strings.Contains(reference, ".md\\[") {
		t.Error("tributary.toml(5) has links that lead nowhere")
	}
}
