package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/link"
)

func TestCompletion(t *testing.T) {
	for args, want := range map[string][]string{
		"serve --scheduler ":       config.Schedulers(),
		"serve --log-level ":       {"debug", "error"},
		"serve --link ":            {"wlan0\t", "eth0\t"},
		"get --link ":              {"wlan0\t"},
		"config ":                  {"check\t", "show\t"},
		"":                         {"completion\t", "doctor\t", "man\t"},
		"get --link wlan0 --link ": {"eth0\t"},
	} {
		t.Run(args, func(t *testing.T) {
			words := strings.Split(args, " ")
			var b bytes.Buffer
			a := &app{
				rawStdout: &b, rawStderr: io.Discard, getenv: func(string) string { return "" },
				candidates: func(config.Config) ([]link.Candidate, *link.Resolver, error) {
					return []link.Candidate{{Link: link.Link{Name: "wlan0"}, Reason: "up"}, {Link: link.Link{Name: "eth0"}, Reason: "up"}}, nil, nil
				},
			}
			a.run(t.Context(), append([]string{"__complete"}, words...))
			out := b.String()
			for _, w := range want {
				if !strings.Contains("\n"+out, "\n"+w) {
					t.Errorf("%q is missing in\n%s", w, out)
				}
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
