package link

import (
	"encoding/binary"
	"net"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Counters count what an interface or a connection received.
type Counters struct {
	Packets int64
	Bytes   int64 // with the packets' headers for an interface, without them for a connection
}

// statsLink64 is IFLA_STATS_LINK_64 of linux/if_link.h: the interface's counters.
const statsLink64 = 1

// statsRequest is struct if_stats_msg.
type statsRequest struct{ index uint32 }

func (statsRequest) Len() int { return 12 }

func (s statsRequest) Serialize() []byte {
	b := make([]byte, 12)
	binary.NativeEndian.PutUint32(b[4:], s.index)
	binary.NativeEndian.PutUint32(b[8:], 1<<(statsLink64-1))
	return b
}

// Received returns what the link's interface received since it was created; false if the kernel does not report it. The
// interface is looked up in the calling thread's network namespace.
func (l Link) Received() (Counters, bool) {
	if l.Index == 0 {
		return Counters{}, false
	}
	request := nl.NewNetlinkRequest(unix.RTM_GETSTATS, 0)
	request.AddData(statsRequest{uint32(l.Index)})
	answers, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWSTATS)
	if err != nil || len(answers) != 1 || len(answers[0]) < 12 {
		return Counters{}, false
	}
	fields, err := nl.ParseRouteAttr(answers[0][12:])
	if err != nil {
		return Counters{}, false
	}
	for _, f := range fields {
		// struct rtnl_link_stats64: rx_packets, tx_packets, rx_bytes, ...
		if f.Attr.Type == statsLink64 && len(f.Value) >= 24 {
			return Counters{
				Packets: int64(binary.NativeEndian.Uint64(f.Value)),
				Bytes:   int64(binary.NativeEndian.Uint64(f.Value[16:])),
			}, true
		}
	}
	return Counters{}, false
}

// Received returns what a connection received: packets, and the bytes of its data; false if the kernel does not report
// it.
func Received(c net.Conn) (Counters, bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return Counters{}, false
	}
	info, ok := tcpInfo(sc)
	if !ok {
		return Counters{}, false
	}
	return Counters{Packets: int64(info.Segs_in), Bytes: int64(info.Bytes_received)}, true
}
