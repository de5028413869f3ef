package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Owner returns the user ID of the process that holds the other end of a TCP connection: the socket whose own address
// is remote and whose peer is local. It takes some microseconds. An error means that the user cannot be determined.
func Owner(local, remote netip.AddrPort) (uid uint32, err error) {
	s, err := find(local, remote)
	if err != nil {
		return 0, fmt.Errorf("find the owner of a connection: %w", err)
	}
	return s.uid, nil
}

// Abandoned reports whether no process holds the other end of a TCP connection any more. false = one does, or it is not
// known.
func Abandoned(local, remote netip.AddrPort) bool {
	s, err := diagnose(unmap(remote), unmap(local))
	return err == nil && s.inode == 0
}

// find returns the socket at the other end, which a process holds.
func find(local, remote netip.AddrPort) (socket, error) {
	local, remote = unmap(local), unmap(remote)
	s, err := diagnose(remote, local)
	if err != nil { // the kernel has no tcp_diag, or a sandbox forbids it
		if s, err = search(remote, local); err != nil {
			return socket{}, err
		}
	}
	if !s.held() {
		return socket{}, ErrUnknown
	}
	return s, nil
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// socket is the kernel's description of a socket.
type socket struct {
	state      uint8
	uid, inode uint32
}

// held reports whether a process holds the socket and its connection is established or half closed.
func (s socket) held() bool {
	switch s.state {
	case unix.BPF_TCP_ESTABLISHED, unix.BPF_TCP_FIN_WAIT1, unix.BPF_TCP_FIN_WAIT2, unix.BPF_TCP_CLOSE_WAIT:
		return s.inode != 0
	}
	return false
}

// Sizes of the messages of linux/inet_diag.h.
const (
	requestSize = unix.SizeofNlMsghdr + 56 // inet_diag_req_v2
	replySize   = unix.SizeofNlMsghdr + 72 // inet_diag_msg
	byFamily    = 20                       // SOCK_DIAG_BY_FAMILY of linux/sock_diag.h
)

// diagnose asks for the one socket with these addresses. Without NLM_F_DUMP the kernel looks it up in its hash table.
func diagnose(own, peer netip.AddrPort) (socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return socket{}, fmt.Errorf("open a sock_diag socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return socket{}, fmt.Errorf("bound a sock_diag answer: %w", err)
	}
	if err := unix.Sendto(fd, question(own, peer), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, fmt.Errorf("ask sock_diag: %w", err)
	}
	var b [1024]byte
	n, from, err := unix.Recvfrom(fd, b[:], 0)
	if err != nil {
		return socket{}, fmt.Errorf("read the response of sock_diag: %w", err)
	}
	if nl, ok := from.(*unix.SockaddrNetlink); !ok || nl.Pid != 0 {
		return socket{}, errors.New("a sock_diag response does not come from the kernel")
	}
	return parse(b[:n])
}

// question makes an inet_diag_req_v2 in its netlink header.
func question(own, peer netip.AddrPort) []byte {
	b := make([]byte, requestSize)
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], requestSize)
	ne.PutUint16(b[4:], byFamily)
	ne.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[unix.SizeofNlMsghdr:]
	r[0], r[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if own.Addr().Is4() {
		r[0] = unix.AF_INET
	}
	ne.PutUint32(r[4:], 1<<32-1) // every state
	binary.BigEndian.PutUint16(r[8:], own.Port())
	binary.BigEndian.PutUint16(r[10:], peer.Port())
	copy(r[12:28], own.Addr().AsSlice())
	copy(r[28:44], peer.Addr().AsSlice())
	ne.PutUint32(r[48:], 1<<32-1) // no cookie: whichever socket has the addresses
	ne.PutUint32(r[52:], 1<<32-1)
	return b
}

// parse reads an inet_diag_msg or an error.
func parse(b []byte) (socket, error) {
	ne := binary.NativeEndian
	switch {
	case len(b) >= unix.SizeofNlMsghdr+4 && ne.Uint16(b[4:]) == unix.NLMSG_ERROR:
		return socket{}, unix.Errno(-int32(ne.Uint32(b[unix.SizeofNlMsghdr:])))
	case len(b) < replySize || ne.Uint16(b[4:]) != byFamily:
		return socket{}, errors.New("the sock_diag response is malformed")
	}
	m := b[unix.SizeofNlMsghdr:]
	return socket{state: m[1], uid: ne.Uint32(m[64:]), inode: ne.Uint32(m[68:])}, nil
}
