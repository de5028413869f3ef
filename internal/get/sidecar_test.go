package get

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSidecarOfKilled: the file that a process left because it was killed while writing is gone after the next write.
func TestSidecarOfKilled(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a"+sidecarSuffix)
	if err := os.WriteFile(name+newSuffix, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sidecar{Format: inOrder, Validator: `"v"`, Size: 9}
	if err := s.write(name); err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 || all[0].Name() != filepath.Base(name) {
		t.Errorf("%v, %v", all, err)
	}
}
