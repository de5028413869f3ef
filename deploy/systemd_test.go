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
	"time"

	"github.com/tributary-http/tributary/internal/config"
)

// analyze runs systemd-analyze on a copy of a unit, with an existing program in place of the unit's.
func analyze(t *testing.T, unit string, args ...string) (string, error) {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: apt-get install systemd")
	}
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(t.TempDir(), "tributary")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	changed := regexp.MustCompile(`(?m)^(Exec\w+=)\S+/tributary`).ReplaceAllString(string(text), "${1}"+fake)
	dir := t.TempDir()
	unitCopy := filepath.Join(dir, "tributary.service")
	socket, err := os.ReadFile(strings.TrimSuffix(unit, ".service") + ".socket")
	if err != nil {
		t.Fatal(err)
	}
	copies := map[string]string{unitCopy: changed, filepath.Join(dir, "tributary.socket"): string(socket)}
	for name := range sockets {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(unit), name))
		if err != nil {
			t.Fatal(err)
		}
		copies[filepath.Join(dir, name)] = string(text)
	}
	for name, text := range copies {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args = append(args, unitCopy)
	if args[0] == "verify" {
		for name := range sockets {
			args = append(args, filepath.Join(dir, name))
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_LOG_LEVEL=warning")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// sockets are the sockets for ports that the configuration may have; they are next to each unit. The values are the setting, and
// the page about it.
var sockets = map[string]struct {
	set  func(c *config.Config, address string)
	page string
}{
	"tributary-gateway.socket": {func(c *config.Config, address string) { c.Gateway = address }, "GATEWAY.md"},
	"tributary-rpc.socket":     {func(c *config.Config, address string) { c.RPC = address }, "RPC.md"},
	"tributary-socks.socket":   {func(c *config.Config, address string) { c.SOCKS = address }, "CONFIGURATION.md"},
}

var units = map[string]bool{ // whether each unit belongs to the user
	"systemd/tributary.service": false, filepath.Join("systemd", "user", "tributary.service"): true,
}

func TestUnitsAreValid(t *testing.T) {
	for unit, user := range units {
		t.Run(unit, func(t *testing.T) {
			args := []string{"verify", "--man=no"}
			if user {
				args = append(args, "--user")
			}
			out, err := analyze(t, unit, args...)
			var about []string
			for line := range strings.Lines(out) { // other units of the machine do not matter
				if strings.Contains(line, "tributary") {
					about = append(about, line)
				}
			}
			if len(about) > 0 {
				t.Errorf("%v: %s", err, strings.Join(about, ""))
			}
		})
	}
}

// TestSystemUnitIsHardened checks systemd's own score of the exposure, from 0 to 10.
func TestSystemUnitIsHardened(t *testing.T) {
	const most = 2.5
	out, err := analyze(t, "systemd/tributary.service", "security", "--offline=true")
	if err != nil && strings.Contains(out, "unrecognized option") {
		t.Skip("this systemd-analyze is older than 250: it cannot look at files")
	}
	m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%v: no exposure in\n%s", err, out)
	}
	if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > most {
		t.Errorf("exposure %s, %v, want %.1f at most", m[1], err, most)
	} else {
		t.Logf("exposure %.1f", level)
	}
}

// directive returns the value of a directive that occurs once in a unit.
func directive(t *testing.T, unit, name string) string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(all) != 1 {
		t.Fatalf("%s: %d lines %s=, want 1", unit, len(all), name)
	}
	return all[0][1]
}

// TestUnitsBoundMemory: a fault must not use up the machine's memory, and downloads must have enough.
func TestUnitsBoundMemory(t *testing.T) {
	for unit := range units {
		value := directive(t, unit, "MemoryMax")
		mib, err := strconv.Atoi(strings.TrimSuffix(value, "M"))
		if least := 4 * int(config.Default().Budget>>20); err != nil || mib < least || mib > 1024 {
			t.Errorf("%s: MemoryMax=%s, %v: want %dM to 1024M", unit, value, err, least)
		}
	}
}

// TestSystemUnitHasNoKeys: the unit has no access to root's keyring. User managers do not know the directive.
func TestSystemUnitHasNoKeys(t *testing.T) {
	if v := directive(t, "systemd/tributary.service", "KeyringMode"); v != "private" {
		t.Errorf("KeyringMode=%s", v)
	}
}

// TestSocketsFitTheProgram: systemd opens the ports that the program listens on.
func TestSocketsFitTheProgram(t *testing.T) {
	shipped, err := config.Load("systemd/tributary.toml", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for unit, user := range units {
		cfg := shipped.Config
		if user {
			cfg = config.Default()
		}
		text, err := os.ReadFile(strings.TrimSuffix(unit, ".service") + ".socket")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^ListenStream=(.*)$`).FindAllSubmatch(text, -1) {
			got = append(got, string(m[1]))
		}
		if want := []string{cfg.Listen, cfg.Admin}; !slices.Equal(got, want) {
			t.Errorf("%s: sockets %v, the program listens on %v", unit, got, want)
		}
	}
}

// TestOptionalSockets: the sockets hand their ports to the service, on loopback, at the addresses that the documentation tells
// users to configure.
func TestOptionalSockets(t *testing.T) {
	for unit := range units {
		for name, s := range sockets {
			path := filepath.Join(filepath.Dir(unit), name)
			address := directive(t, path, "ListenStream")
			if directive(t, path, "Service") != "tributary.service" {
				t.Errorf("%s: another service", path)
			}
			cfg := config.Default()
			if s.set(&cfg, address); cfg.Validate() != nil {
				t.Errorf("%s: %v", path, cfg.Validate())
			}
			for _, doc := range []string{"CONFIGURATION.md", s.page} {
				if text, err := os.ReadFile("../docs/" + doc); err != nil || !strings.Contains(string(text), `"`+address+`"`) {
					t.Errorf("%s does not name %s: %v", doc, address, err)
				}
			}
		}
	}
}

// TestUnitsGiveUp: what only a person can repair does not restart for ever, and does not leave clients waiting.
func TestUnitsGiveUp(t *testing.T) {
	for unit := range units {
		if got := directive(t, unit, "RestartPreventExitStatus"); !strings.HasPrefix(got, "2 3 4") { // as in internal/cli
			t.Errorf("%s: RestartPreventExitStatus=%s", unit, got)
		}
		if got := directive(t, unit, "StartLimitIntervalSec"); got != "0" {
			t.Errorf("%s: StartLimitIntervalSec=%s", unit, got)
		}
		text, err := os.ReadFile(unit)
		if err != nil || !regexp.MustCompile(`(?m)^ExecReload=\S+/tributary config check.*\nExecReload=/bin/kill -HUP`).Match(text) {
			t.Errorf("%s: reload does not check first, %v", unit, err)
		}
		for name := range sockets {
			if got := directive(t, filepath.Join(filepath.Dir(unit), name), "TriggerLimitBurst"); got != "5" {
				t.Errorf("%s: TriggerLimitBurst=%s", name, got)
			}
		}
	}
}

// TestUnitsFitTheProgram: a drain must fit into the time that systemd waits, and the shipped configuration must load.
func TestUnitsFitTheProgram(t *testing.T) {
	const drain = 10 * time.Minute // internal/daemon
	for unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)min$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s: no TimeoutStopSec in minutes", unit)
		}
		if n, _ := strconv.Atoi(string(m[1])); time.Duration(n)*time.Minute <= drain {
			t.Errorf("%s: TimeoutStopSec=%smin, a drain takes %v", unit, m[1], drain)
		}
	}
	cfg, err := config.Load("systemd/tributary.toml", func(string) string { return "" })
	if err == nil {
		err = cfg.Check()
	}
	if err != nil || len(cfg.AllowUsers) != 1 {
		t.Errorf("the shipped configuration: %v, %q", err, cfg.AllowUsers)
	}
}
