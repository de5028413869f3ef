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

// EndLeft ends the processes of this user whose environment names files of a folder: a command's folder whose owner and supervisor were
// both killed. It does nothing if this process is one of them.
func EndLeft(folder string) {
	names := func(environ []byte) bool { return bytes.Contains(environ, []byte("="+folder+"/")) }
	if slices.ContainsFunc(os.Environ(), func(e string) bool { return names([]byte(e)) }) {
		return
	}
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // without /proc nothing is found
	for _, path := range all {
		environ, _ := os.ReadFile(path) // fails for processes of other users
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && names(environ) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
