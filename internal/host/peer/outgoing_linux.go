package peer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Outgoing finds programs that connect to web servers of other machines. The zero value is ready to use; use it in one
// goroutine.
type Outgoing struct {
	open map[string]bool // sockets, as in /proc/PID/fd, that were open at the last look
}

// Look returns the paths of programs with a connection that it has not seen before to port 80 or 443 of another
// machine, among the processes of this user that belong. It sees connections that are established at this moment, and
// takes milliseconds at most.
func (o *Outgoing) Look(belongs func(pid int) bool) (programs []string) {
	open, fresh := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue // without IPv6
		}
		for _, file := range outgoing(f, os.Geteuid()) {
			if open[file] = true; !o.open[file] {
				fresh[file] = true
			}
		}
		f.Close()
	}
	o.open = open
	for _, file := range sockets(os.Getpid()) {
		delete(fresh, file)
	}
	if len(fresh) == 0 {
		return nil
	}
	all, _ := processes() // as far as they can be read
	for _, pid := range all {
		if !belongs(pid) || !slices.ContainsFunc(sockets(pid), func(file string) bool { return fresh[file] }) {
			continue
		}
		if path := program(pid); path != "" && !slices.Contains(programs, path) {
			programs = append(programs, path)
		}
	}
	return programs
}

// outgoing returns the sockets of a user's connections to web servers of other machines, from one table of the kernel
// (see scan).
func outgoing(table io.Reader, uid int) (files []string) {
	const established = "01"
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		row := strings.Fields(lines.Text())
		if len(row) < 10 || row[3] != established || row[7] != strconv.Itoa(uid) || row[9] == "0" {
			continue
		}
		if to := address(row[2]); to.IsValid() && !to.Addr().IsLoopback() && (to.Port() == 80 || to.Port() == 443) {
			files = append(files, fmt.Sprintf("socket:[%s]", row[9]))
		}
	}
	return files
}

// sockets returns the sockets that a process holds.
func sockets(pid int) (files []string) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	fds, _ := os.ReadDir(dir) // the process ended, or is another user's
	for _, fd := range fds {
		if target, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil &&
			strings.HasPrefix(target, "socket:") {
			files = append(files, target)
		}
	}
	return files
}
