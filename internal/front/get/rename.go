package get

import (
	"io/fs"
	"os"
)

// renameChecked renames a file unless another one has the name. It can replace a file that was created a moment ago.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
