package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tributary-test-program"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"serve --scheduler ":       config.Values("scheduler"),
		"serve --log-level ":       {"debug", "error"},
		"serve --goal ":            {"fastest", "cheapest"},
		"get --vpn ":               {"follow", "around"},
		"serve --spread ":          {"auto", "off", "all"},
		"run tribu":                {"tributary-test-program"},
		"serve --link ":            {"wlan0\t", "eth0\t"},
		"get --link ":              {"wlan0\t"},
		"config ":                  {"check\t", "show\t"},
		"":                         {"completion\t", "doctor\t", "man\t"},
		"get --link wlan0 --link ": {"eth0\t"},
		"get --except ":            {"wlan0\t", "eth0\t"},
	} {
		t.Run(args, func(t *testing.T) {
			words := strings.Split(args, " ")
			var b bytes.Buffer
			a := &app{
				rawStdout: &b, rawStderr: io.Discard, getenv: func(name string) string { return map[string]string{"PATH": dir}[name] },
				candidates: func(config.Config) ([]discover.Candidate, *link.Resolver, error) {
					return []discover.Candidate{{Link: link.Link{Name: "wlan0"}, Reason: "up"}, {Link: link.Link{Name: "eth0"}, Reason: "up"}, {Link: link.Link{Name: "lo", Kind: link.KindLoopback}}}, nil, nil
				},
			}
			a.run(t.Context(), append([]string{"__complete"}, words...))
			out := b.String()
			for _, w := range want {
				if !strings.Contains("\n"+out, "\n"+w) {
					t.Errorf("%q is missing in\n%s", w, out)
				}
			}
			if strings.Contains("\n"+out, "\nlo\t") {
				t.Errorf("loopback is offered:\n%s", out)
			}
			if strings.Contains(args, "wlan0") && strings.Contains(out, "wlan0") {
				t.Errorf("a link is offered twice:\n%s", out)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, _ := invoke(t, nil, "completion", shell)
		if code != exitOK || !strings.Contains(out, "tributary") || strings.Contains(out, `\u00`) {
			t.Errorf("%s: code %d, %d bytes", shell, code, len(out))
		}
	}
}
