package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EndLeft ends the processes of this user whose environment names files of a folder: a command's folder whose owner and
// supervisor were both killed. It does nothing if this process is one of them.
func EndLeft(folder string) {
	if slices.ContainsFunc(os.Environ(), func(e string) bool { return strings.Contains(e, "="+folder+"/") }) {
		return
	}
	all, _ := filepath.Glob("/proc/[0-9]*") // without /proc nothing is found
	for _, path := range all {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil && names(pid, folder) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// names reports whether the environment of a process names files of a folder.
func names(pid int, folder string) bool {
	// fails for processes of other users
	environ, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return bytes.Contains(environ, []byte("="+folder+"/"))
}
