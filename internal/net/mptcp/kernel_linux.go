package mptcp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Constants of linux/mptcp.h.
const (
	pmName       = "mptcp_pm"
	pmVersion    = 1
	pmGetAddr    = 3
	pmGetLimits  = 6
	pmAddr       = 1
	pmSubflows   = 3
	addrID       = 2
	addr4        = 3
	addr6        = 4
	addrFlags    = 6
	addrIfIndex  = 7
	flagSubflow  = 1 << 1
	flagFullmesh = 1 << 3
	optionInfo   = 1 // MPTCP_INFO, of SOL_MPTCP
	infoFallback = 1 // MPTCP_INFO_FLAG_FALLBACK
)

// Read returns what the kernel would do with a connection that uses MPTCP.
func Read() (Settings, error) {
	var s Settings
	enabled, err := os.ReadFile("/proc/sys/net/mptcp/enabled")
	if err != nil {
		return s, nil // the kernel was built without MPTCP
	}
	s.Known, s.Enabled = true, strings.TrimSpace(string(enabled)) == "1"
	family, err := netlink.GenlFamilyGet(pmName)
	if err != nil {
		return s, fmt.Errorf("ask the kernel for its MPTCP endpoints: %w", err)
	}
	ask := func(command uint8, flags int) ([][]byte, error) {
		req := nl.NewNetlinkRequest(int(family.ID), flags)
		req.AddData(&nl.Genlmsg{Command: command, Version: pmVersion})
		replies, err := req.Execute(unix.NETLINK_GENERIC, 0)
		if err != nil {
			return nil, fmt.Errorf("ask the kernel for its MPTCP settings: %w", err)
		}
		return replies, nil
	}
	limits, err := ask(pmGetLimits, 0)
	if err != nil {
		return s, err
	}
	for _, reply := range limits {
		for _, a := range attributes(reply[nl.SizeofGenlmsg:]) {
			if a.Attr.Type == pmSubflows && len(a.Value) >= 4 {
				s.Limit = int(binary.NativeEndian.Uint32(a.Value))
			}
		}
	}
	replies, err := ask(pmGetAddr, unix.NLM_F_DUMP)
	if err != nil {
		return s, err
	}
	for _, reply := range replies {
		for _, a := range attributes(reply[nl.SizeofGenlmsg:]) {
			if a.Attr.Type&nl.NLA_TYPE_MASK == pmAddr {
				s.Endpoints = append(s.Endpoints, endpoint(a.Value))
			}
		}
	}
	return s, nil
}

func attributes(b []byte) []syscall.NetlinkRouteAttr {
	all, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil // cannot happen: this is the kernel's own answer
	}
	return all
}

// endpoint parses a nested MPTCP_PM_ATTR_ADDR. The kernel need not name an interface; the interface is then the one that has
// the address.
func endpoint(b []byte) (e Endpoint) {
	for _, a := range attributes(b) {
		switch v := a.Value; a.Attr.Type {
		case addrID:
			e.ID = v[0]
		case addr4, addr6:
			e.Addr, _ = netip.AddrFromSlice(v)
		case addrFlags:
			flags := binary.NativeEndian.Uint32(v)
			e.Subflow = flags&(flagSubflow|flagFullmesh) != 0
		case addrIfIndex:
			if i, err := netlink.LinkByIndex(int(binary.NativeEndian.Uint32(v))); err == nil {
				e.Interface = i.Attrs().Name
			}
		}
	}
	return e
}

// info is the beginning of struct mptcp_info.
type info struct {
	Subflows, _, _, _, _, _ uint8
	Flags                   uint32
}

// subflows returns how many subflows carry a connection, and whether it uses MPTCP at all.
func subflows(c net.Conn) (n int, multipath bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return 1, false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 1, false
	}
	var i info
	size := uint32(unsafe.Sizeof(i))
	var failed unix.Errno
	if raw.Control(func(fd uintptr) {
		_, _, failed = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_MPTCP, optionInfo,
			uintptr(unsafe.Pointer(&i)), uintptr(unsafe.Pointer(&size)), 0)
	}) != nil || failed != 0 || i.Flags&infoFallback != 0 {
		return 1, false
	}
	return 1 + int(i.Subflows), true
}
