package use

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// systemctl puts a program in the place of systemd's: it knows the socket units of two managers.
func systemctl(t *testing.T, system, own string) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
case "$*" in
"--system --no-pager list-sockets"*) printf '` + system + `' ;;
"--user --no-pager list-sockets"*) printf '` + own + `' ;;
*" show "*" held.socket") printf 'ActiveState=active\nUnitFileState=enabled\n' ;;
*" show "*" today.socket") printf 'ActiveState=active\nUnitFileState=disabled\n' ;;
*" show "*" failed.socket") printf 'ActiveState=failed\nUnitFileState=enabled\n' ;;
*) exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// TestHeld: a port is used only if no other user can listen on it.
func TestHeld(t *testing.T) {
	t.Run("R226 a port that others can take", testHeld)
}

func testHeld(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	const line = gateway + " %s.socket tributary.service\\n"
	held, today, failed := strings.Replace(line, "%s", "held", 1), strings.Replace(line, "%s", "today", 1), strings.Replace(line, "%s", "failed", 1)
	const others = "127.0.0.1:80810 held.socket x.service\\n[::]:8081 held.socket x.service\\n/run/x held.socket\\n\\n"
	for _, c := range []struct {
		name, gateway string
		uid           int
		system, own   string
		lingers       bool
		want          string // part of the error, "" = there is none
	}{
		{"systemd holds it", gateway, 0, others + held, "", false, ""},
		{"by another name", "localhost:8081", 0, held, "", false, "can take port 8081"},
		{"by another name, at both addresses", "localhost:8081", 0, held + "[::1]:8081 held.socket\\n", "", false, ""},
		{"systemd holds it, for a user", gateway, uid, held, "", false, ""},
		{"the user's own systemd", gateway, uid, "", held, true, ""},
		{"until the user logs out", gateway, uid, "", held, false, "loginctl enable-linger"},
		{"root does not trust a user's", gateway, 0, "", held, true, "systemctl restart tributary)"},
		{"until the machine restarts", gateway, 0, today, "", false, "can take port 8081"},
		{"a unit that failed", gateway, 0, failed, "", false, "can take port 8081"},
		{"other ports", gateway, 0, others, "", false, "can take port 8081"},
		{"no systemd", gateway, uid, "", "", false, "systemctl --user restart tributary, and loginctl"},
		{"a privileged port", "127.0.0.1:881", uid, "", "", false, ""},
		{"not privileged here", "127.0.0.1:882", uid, "", "", false, "can take port 882"},
	} {
		t.Run("R226 "+c.name, func(t *testing.T) {
			systemctl(t, c.system, c.own)
			m := newMachine(t, c.uid)
			m.Gateway = c.gateway
			m.write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "882\n")
			if c.lingers {
				m.write("/var/lib/systemd/linger/nobody", "")
			}
			err := m.Held(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("R226 as user %s: %v, want %q", strconv.Itoa(m.UID), err, c.want)
			}
		})
	}
}
