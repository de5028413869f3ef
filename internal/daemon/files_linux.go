package daemon

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// wantedFiles is the number of open files that the limits on clients, tunnels and transfers (package proxy) allow,
// including the connections to origins: several for each transfer and one for each tunnel.
const wantedFiles = 4096

// checkFiles warns if the process may not open as many files as it may need (R190). The Go runtime raises the soft
// limit to the hard one at startup.
func checkFiles(log *slog.Logger) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur >= wantedFiles {
		return
	}
	log.Warn("the limit of open files is low: under load, connections will fail; raise it (ulimit -Hn, or LimitNOFILE= in a "+
		"systemd unit)", "limit", l.Cur, "wanted", wantedFiles)
}
