package link

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"time"
)

const (
	// plainFor is how long a server that did not understand EDNS is asked without it. Then it may be another one at the
	// same address.
	plainFor = 10 * time.Minute
	maxPlain = 64 // servers

	dnsHeader = 12
	optRecord = 11 // bytes of an OPT record without options

	rcodeFormat         = 1
	rcodeNotImplemented = 4
)

// withoutEDNS returns a DNS question without the OPT record at its end (RFC 6891), the question itself if it has none.
func withoutEDNS(q []byte) []byte {
	end := len(q) - optRecord
	if end < dnsHeader || binary.BigEndian.Uint16(q[10:]) != 1 || !bytes.Equal(q[end:end+3], []byte{0, 0, 41}) {
		return q
	}
	q = bytes.Clone(q[:end])
	binary.BigEndian.PutUint16(q[10:], 0)
	return q
}

// refusesEDNS reports whether answer says that the server did not understand question, as servers do that do not know
// EDNS: the question may be asked again without it (RFC 6891 section 7).
func refusesEDNS(question, answer []byte) bool {
	if len(question) < dnsHeader || len(answer) < dnsHeader || !bytes.Equal(question[:2], answer[:2]) ||
		answer[2]&0x80 == 0 {
		return false
	}
	rcode := answer[3] & 0xf
	return rcode == rcodeFormat || rcode == rcodeNotImplemented
}

// plainStream is a TCP connection to a DNS server that does not understand EDNS. net.Resolver writes a question with
// its length at once.
type plainStream struct{ net.Conn }

func (s plainStream) Write(b []byte) (int, error) {
	const length = 2
	q := withoutEDNS(b[min(len(b), length):])
	if _, err := s.Conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// isPlain reports whether a server recently did not understand EDNS.
func (r *Resolver) isPlain(server netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.plain[server])
}

func (r *Resolver) setPlain(server netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.plain, func(_ netip.AddrPort, until time.Time) bool { return !now.Before(until) })
	if r.plain == nil || len(r.plain) >= maxPlain {
		r.plain = map[netip.AddrPort]time.Time{}
	}
	r.plain[server] = now.Add(plainFor)
}
