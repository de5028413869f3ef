package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const relayUnit = "systemd/tributary-relay.service"

// analyzeRelay runs systemd-analyze on copies of the relay's units whose program is one that exists.
func analyzeRelay(t *testing.T, args ...string) string {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: apt-get install systemd")
	}
	dir := t.TempDir()
	for _, name := range []string{"tributary-relay.service", "tributary-relay.socket"} {
		text, err := os.ReadFile(filepath.Join("systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		changed := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAll(text, []byte("ExecStart=/bin/true"))
		if err := os.WriteFile(filepath.Join(dir, name), changed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args = append(args, filepath.Join(dir, "tributary-relay.service"))
	if args[0] == "verify" {
		args = append(args, filepath.Join(dir, "tributary-relay.socket"))
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_LOG_LEVEL=warning")
	out, _ := cmd.CombinedOutput() // it fails for what is wrong with other units of the machine, too
	return string(out)
}

func TestRelayUnitsAreValid(t *testing.T) {
	for line := range strings.Lines(analyzeRelay(t, "verify", "--man=no")) {
		if strings.Contains(line, "tributary") {
			t.Error(line)
		}
	}
}

// TestRelayUnitIsHardened checks systemd's own score of the exposure, 0 to 10.
func TestRelayUnitIsHardened(t *testing.T) {
	const most = 1.3
	out := analyzeRelay(t, "security", "--offline=true")
	if strings.Contains(out, "unrecognized option") {
		t.Skip("this systemd-analyze is older than 250: it cannot look at files")
	}
	m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no exposure in\n%s", out)
	}
	if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > most {
		t.Errorf("exposure %s, %v, want %.1f at most: %s", m[1], err, most, out)
	} else {
		t.Logf("exposure %.1f", level)
	}
}

// TestRelayUnitFitsTheProgram: the state folder is the one in which root's commands look, and the port is the socket's.
func TestRelayUnitFitsTheProgram(t *testing.T) {
	code, err := os.ReadFile("../internal/cli/relayservice.go")
	if err != nil {
		t.Fatal(err)
	}
	if dir := "/var/lib/" + directive(t, relayUnit, "StateDirectory"); !strings.Contains(string(code), `"`+dir+`"`) {
		t.Errorf("the program does not know %s", dir)
	}
	if start := strings.Fields(directive(t, relayUnit, "ExecStart")); !slices.Equal(start[1:], []string{"relay", "serve"}) {
		t.Errorf("%q", start)
	}
	if port := directive(t, "systemd/tributary-relay.socket", "ListenStream"); port != "443" {
		t.Errorf("port %s", port)
	}
}
