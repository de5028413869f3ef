package control

import (
	"path/filepath"
	"strconv"
)

const file = "control.sock"

// Path returns where the socket of a user's proxy is: in $RUNTIME_DIRECTORY, which systemd gives to services, in
// $XDG_RUNTIME_DIR/tributary, for root in /run/tributary, otherwise in a folder of the user's own below temp.
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

// System is the socket of a proxy that runs as a service of the system.
const System = "/run/tributary/" + file
