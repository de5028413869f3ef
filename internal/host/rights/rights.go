// Package rights reads the open files attached to a message on a Unix socket (unix(7), SCM_RIGHTS).
package rights

import (
	"os"

	"golang.org/x/sys/unix"
)

// Space returns the size in bytes of the ancillary data of a message with n files.
func Space(n int) int { return unix.CmsgSpace(4 * n) }

// Files returns the files in ancillary data, which the caller must close. Malformed data contains none.
func Files(oob []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files
}
