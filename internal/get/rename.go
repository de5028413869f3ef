package get

import (
	"io/fs"
	"os"
)

// renameChecked renames a file and replaces none that has been there for a moment.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
