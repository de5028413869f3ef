package doctor

import (
	"net/netip"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// Facts are the known facts about the machine and the configuration. Zero values mean unknown.
type Facts struct {
	Kernel     [2]int // major, minor
	NetRaw     bool   // the capability CAP_NET_RAW is effective
	Executable string
	Now        time.Time

	ConfigFile  string // path of the file in use, "" if none
	ConfigPath  string // path where the file is, or would be
	ConfigError error

	Links      []Link
	LinksError error
	System     discover.Candidate // link that the system itself sends over; Name "" = it has no default route

	Ports []Port

	Env map[string]string // the proxy variables that are set

	Files      uint64 // limit on open files
	FilesHard  uint64
	Memory     int64  // bytes of the machine or, if less, of the control group
	MemoryFrom string // source of Memory: the machine or the control group
	Budget     int64
}

// Link holds the known facts about an interface that is used.
type Link struct {
	discover.Candidate
	Upstream   error // error of connecting to its upstream proxy, if it has one
	BindError  error // error of a socket bound to it
	RouteError error // error of finding a route for a socket bound to it
	Reverse    bool  // the system routes packets from its IPv4 address over it
	Table      bool  // the configuration has a table for it
	RPFilter   int   // effective net.ipv4.conf.*.rp_filter: 0 off, 1 strict, 2 loose, -1 unknown
	Servers    link.Servers
	DNSError   error         // no server, or no server that answers
	DNSTook    time.Duration // duration of one question, 0 = not asked
	Router     netip.Addr    // gateway that answers DNS questions; looked for if no other server does
}

// Port is an address to listen on.
type Port struct {
	Flag    string // flag of serve that sets it
	Addr    netip.AddrPort
	Err     error // error of listening
	Holder  Holder
	Running bool // Tributary has it
}

// Used returns the links that are used.
func (f *Facts) Used() (all []Link) {
	for _, l := range f.Links {
		if l.Use {
			all = append(all, l)
		}
	}
	return all
}
