package deploy

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/template"
)

var update = flag.Bool("update", false, "write relay/cloud-init.yaml")

const cloudInit = "relay/cloud-init.yaml"

// TestCloudInit: the file for cloud-init installs what "relay setup" installs.
func TestCloudInit(t *testing.T) {
	indent := func(path string) (string, error) {
		text, err := os.ReadFile(path)
		var b strings.Builder
		for line := range strings.Lines(string(text)) {
			if line != "\n" {
				b.WriteString("      ")
			}
			b.WriteString(line)
		}
		return strings.TrimSuffix(b.String(), "\n"), err
	}
	tmpl, err := template.New("cloud-init.yaml.tmpl").Funcs(template.FuncMap{"indent": indent}).ParseFiles(cloudInit + ".tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := tmpl.Execute(&want, nil); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(cloudInit, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(cloudInit); err != nil || string(got) != want.String() {
		t.Errorf("%s is not what its parts make (%v): go test ./deploy -run TestCloudInit -update", cloudInit, err)
	}
}

// TestFirstBoot: a shell can parse the script, which TestRelayCloudInit of the lab runs.
func TestFirstBoot(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", "relay/first-boot.sh").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
