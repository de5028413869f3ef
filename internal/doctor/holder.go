package doctor

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Holder is a process that listens on a port.
type Holder struct {
	PID  int
	Name string // as in /proc/PID/comm
}

// systemd is the name of the process that opens the sockets of socket units and keeps them in addition to the service
// that it starts.
const systemd = "systemd"

// PortHolder returns the process whose TCP listener occupies addr. It finds the listener's inode in net/tcp and
// net/tcp6 below proc (proc_net_tcp.rst in the kernel's documentation) and looks for the process that has it open; only
// root can see the processes of other users. If systemd and a service share the listener (systemd.socket(5)), it
// returns the service.
func PortHolder(proc string, addr netip.AddrPort) (Holder, bool) {
	inodes := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if local, inode, ok := parseListener(line); ok && conflict(local, addr) {
				inodes["socket:["+inode+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return Holder{}, false
	}

	entries, err := os.ReadDir(proc)
	if err != nil {
		return Holder{}, false
	}
	var manager Holder
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fds, err := os.ReadDir(filepath.Join(proc, e.Name(), "fd"))
		if err != nil {
			continue // it ended, or belongs to another user
		}
		for _, fd := range fds {
			target, err := os.Readlink(filepath.Join(proc, e.Name(), "fd", fd.Name()))
			if err == nil && inodes[target] {
				// a missing name still leaves the process ID
				comm, _ := os.ReadFile(filepath.Join(proc, e.Name(), "comm"))
				h := Holder{PID: pid, Name: strings.TrimSpace(string(comm))}
				if h.Name != systemd {
					return h, true
				}
				manager = h
			}
		}
	}
	return manager, manager != Holder{}
}

// conflict reports whether a listener on one address keeps another from listening on the other.
func conflict(a, b netip.AddrPort) bool {
	x, y := a.Addr().Unmap(), b.Addr().Unmap()
	return a.Port() == b.Port() && (x == y || x.IsUnspecified() || y.IsUnspecified())
}

// tcpListen is TCP_LISTEN of the kernel's net/tcp_states.h.
const tcpListen = "0A"

// parseListener parses a line of /proc/net/tcp or tcp6. If it is a listener, parseListener returns its local address
// and inode.
func parseListener(line string) (local netip.AddrPort, inode string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != tcpListen {
		return local, "", false
	}
	host, port, ok := strings.Cut(f[1], ":")
	if !ok {
		return local, "", false
	}
	ip, err := hex.DecodeString(host)
	if err != nil || len(ip)%4 != 0 {
		return local, "", false
	}
	for i := 0; i < len(ip); i += 4 { // each 32-bit word is printed in the byte order of the machine
		binary.NativeEndian.PutUint32(ip[i:], binary.BigEndian.Uint32(ip[i:]))
	}
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return local, "", false
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return local, "", false
	}
	return netip.AddrPortFrom(addr, uint16(n)), f[9], true
}
