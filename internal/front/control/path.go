package control

import (
	"path/filepath"
	"strconv"
)

const file = "control.sock"

// Path returns the path of the socket of a user's proxy. Its folder is $RUNTIME_DIRECTORY, which systemd sets for
// services, or $XDG_RUNTIME_DIR/tributary, /run/tributary for root, or otherwise the user's own folder in temp.
func Path(getenv func(string) string, uid int, temp string) string {
	if dir := getenv("RUNTIME_DIRECTORY"); filepath.IsAbs(dir) {
		return filepath.Join(dir, file)
	}
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tributary", file)
	}
	if uid == 0 {
		return System
	}
	return filepath.Join(temp, "tributary-"+strconv.Itoa(uid), file)
}

// System is the socket of a proxy that runs as a system service.
const System = "/run/tributary/" + file
