package get

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenSpecial replaces the pipe that was found under a name before by another file.
func TestOpenSpecial(t *testing.T) {
	name := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := name + ".link"
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{name, link} {
		if f, err := openSpecial(at); !errors.Is(err, errRegular) {
			t.Errorf("%s: %v, want %v", at, err, errRegular)
			_ = f.Close()
		}
	}
	pipe := name + ".pipe"
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, at := range []string{pipe, os.DevNull} {
		f, err := openSpecial(at)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		_ = f.Close()
	}
}
