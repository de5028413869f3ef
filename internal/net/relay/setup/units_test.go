package setup

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

// analyzeRelay runs systemd-analyze on copies of the relay's units with a program that exists.
func analyzeRelay(t *testing.T, args ...string) string {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: apt-get install systemd")
	}
	dir := t.TempDir()
	for _, name := range []string{"tributary-relay.service", "tributary-relay.socket"} {
		text, err := os.ReadFile(name)
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
	out, _ := cmd.CombinedOutput() // it also fails for errors in other units of the machine
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
	const most = 1.5 // each version of systemd scores somewhat differently
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
	code, err := os.ReadFile("../../../cli/relayservice.go")
	if err != nil {
		t.Fatal(err)
	}
	directive := func(unit, name string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(unit, -1)
		if len(m) != 1 {
			t.Fatalf("%d lines %s=, want 1", len(m), name)
		}
		return m[0][1]
	}
	if dir := "/var/lib/" + directive(service, "StateDirectory"); !strings.Contains(string(code), `"`+dir+`"`) || !strings.Contains(common, "state="+dir+"\n") {
		t.Errorf("the program or the script does not know %s", dir)
	}
	if start := strings.Fields(directive(service, "ExecStart")); !slices.Equal(start, []string{program, "relay", "serve"}) {
		t.Errorf("%q", start)
	}
	if !strings.Contains(common, "program="+program+"\n") {
		t.Errorf("the script does not know %s", program)
	}
	if port := directive(socket, "ListenStream"); port != strconv.Itoa(DefaultPort) {
		t.Errorf("port %s", port)
	}
}
