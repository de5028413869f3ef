package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the test binary is not for amd64")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for uname, want := range map[string]string{
		"Linux x86_64": "", "Linux aarch64": "GOARCH=arm64", "Linux armv7l": "GOARCH=arm ", "FreeBSD amd64": "needs Linux", "Linux vax": "vax",
	} {
		err := fits(self, uname)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", uname, err, want)
		}
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if fits(text, "Linux x86_64") == nil {
		t.Error("a script is a program")
	}
}

func TestDestination(t *testing.T) {
	for _, bad := range []string{"", "-oProxyCommand=true"} {
		if s, err := Open(bad, nil); err == nil {
			s.Close()
			t.Errorf("%q is a destination", bad)
		}
	}
}

// TestScripts: shells can read them, and the files that they write are the embedded ones.
func TestScripts(t *testing.T) {
	script := common + writes("write_socket", "socket", socket)
	for _, text := range []string{common + install, common + remove, script} {
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	path := filepath.Join(t.TempDir(), "socket")
	cmd := exec.Command("sh", "-s", "--", path)
	cmd.Stdin = strings.NewReader(script + "socket=$1\nwrite_socket\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != socket {
		t.Errorf("%v: %s", err, got)
	}
	if !strings.Contains(socket, "ListenStream=443\n") {
		t.Error("the port cannot be replaced")
	}
}
