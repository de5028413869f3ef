package partial

import (
	"fmt"
	"os"
	"strings"
)

// Seal binds a mark to a file, for a program that keeps its own record of its files: the app. It does without the time
// of the file's last change, since a phone's storage moves and touches files, and without the device, since it offers
// files in several ways.
func Seal(f *os.File, mark string) string {
	is, err := statusOf(f)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s.%x.%x", mark, is.Inode, is.Born)
}

// Unseal returns the mark. ok reports whether it was sealed for this file.
func Unseal(f *os.File, sealed string) (mark string, ok bool) {
	mark, seal, _ := strings.Cut(sealed, ".")
	is, err := statusOf(f)
	var inode uint64
	var born int64
	if _, serr := fmt.Sscanf(seal, "%x.%x", &inode, &born); err != nil || serr != nil {
		return "", false
	}
	// not every way to the file tells its birth
	return mark, inode == is.Inode && (born == is.Born || born == 0 || is.Born == 0)
}
