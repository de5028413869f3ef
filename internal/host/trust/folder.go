package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const folderPrefix = "tributary-run-"

// Folder is a folder for the files of one command. It is locked while its process lives: an unlocked folder was left
// behind.
type Folder struct {
	Path string
	// Apt is the ID of the user that root's apt downloads as; 0 = there is none.
	Apt int

	lock *os.File
}

// NewFolder creates a folder in base that only this user can read, and removes those left there by processes that were
// killed, after it has called left for each.
func NewFolder(base string, left func(path string)) (*Folder, error) {
	prune(base, left)
	for range 10 { // before it is locked, another process may consider it left behind
		path, err := os.MkdirTemp(base, folderPrefix)
		if err != nil {
			return nil, err
		}
		if lock := own(path); lock != nil {
			return &Folder{Path: path, lock: lock}, nil
		}
	}
	return nil, fmt.Errorf("%s: a new folder disappears immediately", base)
}

// own locks a folder of this user; it returns nil if the folder belongs to another user, is locked or gone.
func own(path string) *os.File {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	var is, now unix.Stat_t
	err = errors.Join(unix.Fstat(fd, &is), unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.Lstat(path, &now))
	if err != nil || int(is.Uid) != os.Geteuid() || is.Ino != now.Ino {
		f.Close()
		return nil
	}
	return f
}

func prune(base string, left func(path string)) {
	all, _ := filepath.Glob(filepath.Join(base, folderPrefix+"*")) // fails only for a bad pattern
	for _, path := range all {
		if lock := own(path); lock != nil {
			left(path)
			_ = os.RemoveAll(path)
			lock.Close()
		}
	}
}

// write creates a file in the folder that only this user can read.
func (f *Folder) write(name string, parts ...[]byte) (path string, err error) {
	var text []byte
	for _, p := range parts {
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		text = append(text, p...)
	}
	path = filepath.Join(f.Path, name)
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	_, err = to.Write(text)
	return path, errors.Join(err, to.Close())
}

// give gives a file of the folder to another user, for reading. Others can then reach files in the folder, but only by
// name.
func (f *Folder) give(path string, uid int) error {
	return errors.Join(os.Chown(path, uid, -1), os.Chmod(path, 0o400), os.Chmod(f.Path, 0o711))
}

// Remove removes the folder, if it is still there.
func (f *Folder) Remove() error {
	defer f.lock.Close()
	return os.RemoveAll(f.Path)
}
