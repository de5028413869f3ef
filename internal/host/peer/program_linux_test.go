package peer

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPrograms: Of finds the program at the other end, also among named ones.
func TestPrograms(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if sleep, err = filepath.EvalSymlinks(sleep); err != nil {
		t.Fatal(err)
	}
	var programs Programs
	for _, want := range []string{self, sleep, self, sleep} { // the second time, it is checked first
		c, own := pair(t, "tcp", "127.0.0.1:0")
		end := func() {}
		if want == sleep { // another process has it
			end = handOver(t, c, sleep)
		}
		local, remote := addrs(own)
		name := filepath.Base(want)
		for _, c := range []struct {
			names []string
			want  string
		}{{[]string{"steam"}, ""}, {[]string{filepath.Dir(want)}, ""}, {[]string{}, ""}, {[]string{"steam", name}, want}, {nil, want}} {
			if got, err := programs.Of(local, remote, c.names); got != c.want || err != nil {
				t.Errorf("R163 among %q: %q, %v; want %q", c.names, got, err, c.want)
			}
		}
		end()
		c.Close()
		if got, err := programs.Of(local, remote, nil); got != "" || !errors.Is(err, ErrUnknown) {
			t.Errorf("R163 nobody is there: %q, %v", got, err)
		}
		own.Close()
	}
}

// handOver starts a copy of sleep that holds a connection in place of this process, and returns what ends it.
func handOver(t *testing.T, c *net.TCPConn, sleep string) (end func()) {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sleep, "1000")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	c.Close()
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
}

// TestScript: scripts of an interpreter are told from each other.
func TestScript(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(t.TempDir(), "python3.11")
	if err := os.WriteFile(python, text, 0o700); err != nil {
		t.Fatal(err)
	}
	c, own := pair(t, "tcp", "127.0.0.1:0")
	defer handOver(t, c, python)()
	local, remote := addrs(own)
	var programs Programs
	got, err := programs.Of(local, remote, []string{"python3.11"})
	if got != python+" 1000" || err != nil {
		t.Errorf("R163 %q, %v", got, err)
	}
	if len(programs.Read(got, "maps")) == 0 {
		t.Error("R163 nothing is loaded")
	}
	for want, args := range map[string][]string{
		"/usr/bin/yt-dlp": {"python3", "/usr/bin/yt-dlp", "-q", "URL"},
		"x.py":            {"python3", "-u", "x.py"},
		"pip":             {"python3", "-I", "-m", "pip", "install"},
		"":                {"python3", "-c", "import x", "y"},
	} {
		if got := script(args); got != want {
			t.Errorf("R163 %q: %q, want %q", args, got, want)
		}
	}
	for _, args := range [][]string{{""}, {"python3"}, {"python3", "-m"}, {"perl", "-e", "1"}, {"python3", "-"}, {"python3", "a\nb"}} {
		if got := script(args); got != "" {
			t.Errorf("R163 %q: %q", args, got)
		}
	}
}
