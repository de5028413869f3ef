package get

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errRegular reports that a file is not the device or pipe that was found under its name before.
var errRegular = errors.New("it is no longer a device or a pipe")

// openSpecial opens a device or a pipe that the user named, for writing. A pipe must belong to the user or root, and so
// must every symbolic link that leads there, since their owners can read the data. Only root makes devices.
func openSpecial(name string) (*os.File, error) {
	if err := followsOwn(name); err != nil {
		return nil, err
	}
	// O_PATH only locates the file: the check comes before the file is opened, and the file opened later is the one
	// that was checked.
	found, err := os.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) == 0 { // the file found before was replaced
		return nil, errRegular
	}
	if info.Mode()&fs.ModeNamedPipe != 0 && !nameless(found) {
		if err := owned(info, name, os.Geteuid(), 0); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", found.Fd()), os.O_WRONLY, 0)
}

// maxLinks is how many symbolic links the kernel follows (path_resolution(7)).
const maxLinks = 40

// followsOwn returns an error if a name leads through a symbolic link that belongs to neither the user nor root.
func followsOwn(name string) error {
	at := name
	for range maxLinks {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return nil // the end of the chain, including a link in /proc to something without a name
		}
		if err := owned(info, at, os.Geteuid(), 0); err != nil {
			return err
		}
		to, err := os.Readlink(at)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(to) {
			dir, _ := filepath.Split(at)
			to = dir + to // not cleaned: after a link, ".." leads elsewhere than its spelling suggests
		}
		at = to
	}
	return nil
}

// nameless reports whether a pipe is not in any folder, so that another user cannot have put it there. A pipe that the
// shell made, which /dev/stdout leads to, belongs to the user who called sudo.
func nameless(f *os.File) bool {
	var s unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &s) == nil && s.Type == unix.PIPEFS_MAGIC
}
