package get

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// In a folder that several users may write to, another user can put a file, a pipe or a link where a download will look
// next. So an existing file is used only if no other user can have made it or written to it.

// strangerError reports that another user owns a file. The file is left alone, whatever the user's flags are.
type strangerError struct {
	file string
	uid  uint32
}

func (e *strangerError) Error() string { return fmt.Sprintf("%s belongs to user %d", e.file, e.uid) }

// errNotRegular reports that a file is a pipe, a device or the like.
var errNotRegular = errors.New("is not a regular file")

// ours returns an error unless a file is regular and the user's own, and only that user can have written to it. The
// file must be open, since its name may later lead to another file.
func ours(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w", f.Name(), errNotRegular)
	}
	if err := owned(info, f.Name(), os.Geteuid()); err != nil {
		return err
	}
	switch {
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s has mode %v: other users may write to it", f.Name(), info.Mode().Perm())
	case info.Sys().(*syscall.Stat_t).Nlink > 1: // 0 if it was replaced since it was opened
		return fmt.Errorf("%s has more than one hard link", f.Name())
	}
	return nil
}

// owned returns a *strangerError if none of the users owns a file.
func owned(info fs.FileInfo, name string, users ...int) error {
	uid := info.Sys().(*syscall.Stat_t).Uid
	for _, u := range users {
		if int(uid) == u {
			return nil
		}
	}
	return &strangerError{name, uid}
}

// openTo gives write permission for a complete file to those who may read it, unless the umask forbids it. A .part must
// not have this permission, but the new files of other programs do.
func openTo(f *os.File, umask fs.FileMode) {
	if info, err := f.Stat(); err == nil {
		mode := info.Mode().Perm()
		if open := mode | (mode&0o044)>>1&^umask; open != mode {
			_ = f.Chmod(open) // on a file system without modes, the mode stays as it is
		}
	}
}

// umask returns the umask of this process, or one that permits nothing if it is unknown. It does not use the system
// call that reads the umask, which also changes it for all threads (umask(2)).
func umask() fs.FileMode {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if digits, ok := strings.CutPrefix(line, "Umask:"); ok {
			if n, err := strconv.ParseUint(strings.TrimSpace(digits), 8, 32); err == nil {
				return fs.FileMode(n)
			}
		}
	}
	return 0o777
}
