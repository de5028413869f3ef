package doctor

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestPortHolder(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Skipf("no listener on %s: %v", addr, err)
			}
			defer l.Close()
			own, err := os.ReadFile("/proc/self/comm")
			if err != nil {
				t.Skipf("no /proc: %v", err)
			}
			h, ok := PortHolder("/proc", l.Addr().(*net.TCPAddr).AddrPort())
			if want := (Holder{os.Getpid(), string(own[:len(own)-1])}); !ok || h != want {
				t.Errorf("holder %+v, %v, want %+v", h, ok, want)
			}
		})
	}
}

func TestPortHolderNotFound(t *testing.T) {
	proc := t.TempDir()
	if h, ok := PortHolder(proc, netip.MustParseAddrPort("127.0.0.1:8080")); ok {
		t.Errorf("found %+v where there is nothing", h)
	}
	// The listener of another user's process: it is in the table, but its process is not visible.
	line := "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100\n"
	if err := os.MkdirAll(filepath.Join(proc, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "net", "tcp"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, ok := PortHolder(proc, netip.MustParseAddrPort("127.0.0.1:8080")); ok {
		t.Errorf("found %+v without a process", h)
	}
	// The same with a visible process.
	dir := filepath.Join(proc, "77", "fd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("socket:[4242]", filepath.Join(dir, "3")); err != nil {
		t.Fatal(err)
	}
	if h, ok := PortHolder(proc, netip.MustParseAddrPort("127.0.0.1:8080")); !ok || h.PID != 77 {
		t.Errorf("holder %+v, %v, want pid 77", h, ok)
	}
}

func TestParseListener(t *testing.T) {
	for _, c := range []struct {
		line, local, inode string
	}{
		{"  0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 1000 0 4242 1", "127.0.0.1:8080", "4242"},
		{"  0: 00000000000000000000000001000000:1F90 0:0 0A 0:0 00:0 0 0 0 17 1", "[::1]:8080", "17"},
		{"  0: 0100007F:1F90 0100007F:9999 01 0:0 00:0 0 1000 0 4242 1", "", ""}, // established
		{"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode", "", ""},
		{"  0: 0100007:1F90 00000000:0000 0A 0:0 00:0 0 1000 0 4242 1", "", ""},
		{"", "", ""},
	} {
		local, inode, ok := parseListener(c.line)
		if ok != (c.local != "") || (ok && (local.String() != c.local || inode != c.inode)) {
			t.Errorf("%q: %v, %s, %v, want %q, %q", c.line, local, inode, ok, c.local, c.inode)
		}
	}
}

func TestConflict(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:81", false},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"0.0.0.0:80", "127.0.0.1:80", true},
		{"[::]:80", "127.0.0.1:80", true},
		{"[::ffff:127.0.0.1]:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "0.0.0.0:80", true},
	} {
		if got := conflict(netip.MustParseAddrPort(c.a), netip.MustParseAddrPort(c.b)); got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.a, c.b, strconv.FormatBool(got), strconv.FormatBool(c.want))
		}
	}
}

// TestPortHolderSocketActivation: both systemd and the service that it started have the listener open.
func TestPortHolderSocketActivation(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, name string) {
		t.Helper()
		dir := filepath.Join(proc, pid)
		if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "comm"), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("socket:[4242]", filepath.Join(dir, "fd", "3")); err != nil {
			t.Fatal(err)
		}
	}
	line := "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100\n"
	if err := os.MkdirAll(filepath.Join(proc, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "net", "tcp"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort("127.0.0.1:8080")

	process("1", "systemd")
	if h, ok := PortHolder(proc, addr); !ok || h != (Holder{1, "systemd"}) {
		t.Errorf("before the service runs: %+v, %v, want systemd", h, ok)
	}
	process("77", "tributary")
	process("900", "systemd") // of a user, later in the list
	if h, ok := PortHolder(proc, addr); !ok || h != (Holder{77, "tributary"}) {
		t.Errorf("with the service: %+v, %v, want tributary", h, ok)
	}
}
