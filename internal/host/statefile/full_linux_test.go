package statefile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReplaceOnFullDisk: the old content is kept, and no other file is left.
func TestReplaceOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no file system can be mounted: %v (run it as root)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "state")
	if err := Replace(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), bytes.Repeat([]byte("x"), 56<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, bytes.Repeat([]byte("new"), 10<<10)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if got, err := Read(path, 100); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}
