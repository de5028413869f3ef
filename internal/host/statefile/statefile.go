package statefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrForeign means that a file or folder is not this user's alone: another user owns it or may write to it, or it is a
// link or a device.
var ErrForeign = errors.New("not this user's alone")

// lockPause is the time between two attempts to take a lock that another process holds.
const lockPause = 10 * time.Millisecond

// Path returns the path of the file with the given name: in $STATE_DIRECTORY, which systemd sets for services, in
// $XDG_STATE_HOME/tributary, or in a folder of $HOME.
func Path(getenv func(string) string, name string) string {
	if dir := getenv("STATE_DIRECTORY"); filepath.IsAbs(dir) {
		return filepath.Join(dir, name)
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tributary", name)
	}
	home := getenv("HOME")
	if home == "" {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "tributary", name)
}

// Lock gives this process the exclusive right to change the file, until it calls unlock. It creates the folder if there
// is none, and waits for other processes until ctx ends.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, int(lock.Fd())); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return func() { lock.Close() }, nil // releases the lock, too
}

func flock(ctx context.Context, fd int) error {
	how := unix.LOCK_EX
	if ctx.Done() != nil {
		how |= unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(fd, how); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(lockPause):
			}
		default:
			return err
		}
	}
}

// Own checks that the folder of a file, or the nearest existing one above it, belongs to this user alone: root with the
// environment of another user does not create folders there, and users cannot plant a folder for others. A link to such
// a folder is accepted if it belongs to this user or root: systemd creates one for a service with DynamicUser. A group
// may write to the folder if it has the number of its user: systems with a group for each user may have a umask of 002.
func Own(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		var is unix.Stat_t
		err := unix.Lstat(dir, &is)
		if err == nil && is.Mode&unix.S_IFMT == unix.S_IFLNK && (is.Uid == 0 || int(is.Uid) == os.Geteuid()) {
			err = unix.Stat(dir, &is)
		}
		switch {
		case errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", dir, err)
		case is.Mode&unix.S_IFMT != unix.S_IFDIR || int(is.Uid) != os.Geteuid(),
			is.Mode&0o002 != 0, is.Mode&0o020 != 0 && is.Gid != is.Uid:
			return fmt.Errorf("%s: %w", dir, ErrForeign)
		}
		return nil
	}
}

// Read returns at most the given number of bytes from the beginning of a file of this user.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s: %w", path, ErrForeign)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return nil, err
	}
	if is.Mode&unix.S_IFMT != unix.S_IFREG || is.Mode&0o022 != 0 || int(is.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s: %w", path, ErrForeign)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Replace replaces the content of a file. Only its user may read it.
func Replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
