package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// search reads the kernel's tables of TCP sockets (proc(5), /proc/net/tcp) until it finds the one with these addresses.
// An IPv4 connection may belong to an IPv6 socket.
func search(own, peer netip.AddrPort) (socket, error) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // without IPv6; on Android
			continue
		}
		if err != nil {
			return socket{}, err
		}
		s, ok, err := scan(f, own, peer)
		f.Close()
		if ok || err != nil {
			return s, err
		}
	}
	return socket{}, ErrUnknown
}

// scan looks through one table.
func scan(r io.Reader, own, peer netip.AddrPort) (s socket, found bool, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ...
		f := strings.Fields(lines.Text())
		if len(f) < 10 || address(f[1]) != own || address(f[2]) != peer {
			continue
		}
		state, e1 := strconv.ParseUint(f[3], 16, 8)
		uid, e2 := strconv.ParseUint(f[7], 10, 32)
		inode, e3 := strconv.ParseUint(f[9], 10, 32)
		if e := errors.Join(e1, e2, e3); e != nil {
			return socket{}, false, e
		}
		return socket{uint8(state), uint32(uid), uint32(inode)}, true, nil
	}
	return socket{}, false, lines.Err()
}

// address parses "0100007F:1F90": words of 32 bits as the kernel holds them in memory, printed as numbers. It returns
// the zero value for anything else.
func address(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	n, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(n))
}
