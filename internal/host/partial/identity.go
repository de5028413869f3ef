package partial

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// identity tells a file apart from all others, also from a later one with the same inode.
type identity struct {
	Device uint64 `json:"device"` // may be another one after a reboot
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born"` // nanoseconds; 0 = the file system does not tell
}

// is reports whether two identities are those of one file.
func (id identity) is(other identity, sameBoot bool) bool {
	device := id.Device == other.Device || !sameBoot && id.Born != 0
	return id.Inode == other.Inode && id.Born == other.Born && device
}

// status is what is known about a file.
type status struct {
	identity
	size     int64
	changed  int64 // time of the last change of content or status, in nanoseconds
	modified int64 // time of the last change of content
	regular  bool
	made     bool // the file system makes inodes up when it is mounted
}

// coarse reports whether the file system tells too little to recognize a file: no birth, and the last change only in
// seconds.
func (s status) coarse() bool { return s.Born == 0 && s.changed%1e9 == 0 }

// statusOf returns the status of an open file.
func statusOf(f *os.File) (status, error) {
	st, err := statusAt(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	var fs unix.Statfs_t
	if err == nil && unix.Fstatfs(int(f.Fd()), &fs) == nil {
		st.made = fs.Type == unix.MSDOS_SUPER_MAGIC || fs.Type == unix.EXFAT_SUPER_MAGIC
	}
	return st, err
}

// statusOfPath returns the status of the file at a path, which may be a symbolic link.
func statusOfPath(path string) (status, error) {
	return statusAt(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW)
}

func statusAt(fd int, path string, flags int) (status, error) {
	var x unix.Statx_t
	err := unix.Statx(fd, path, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &x)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 4.11, or in a sandbox
		var s unix.Stat_t
		if err = unix.Fstatat(fd, path, &s, flags); err != nil {
			return status{}, err
		}
		return status{
			identity: identity{uint64(s.Dev), uint64(s.Ino), 0},
			size:     s.Size,
			changed:  s.Ctim.Nano(),
			modified: s.Mtim.Nano(),
			regular:  s.Mode&unix.S_IFMT == unix.S_IFREG,
		}, nil
	}
	if err != nil {
		return status{}, err
	}
	st := status{
		identity: identity{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino, 0},
		size:     int64(x.Size),
		changed:  nanoseconds(x.Ctime),
		modified: nanoseconds(x.Mtime),
		regular:  x.Mode&unix.S_IFMT == unix.S_IFREG,
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		st.Born = nanoseconds(x.Btime)
	}
	return st, nil
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// bootID returns the ID of this boot of the machine, "" if there is none.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}
