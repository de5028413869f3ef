package linktest

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Asked is a question that a server received.
type Asked struct {
	Name string
	Type dnsmessage.Type
	TCP  bool
	EDNS bool
}

// Said is a scripted answer; the zero value is an answer without records.
type Said struct {
	Drop      bool
	RCode     dnsmessage.RCode
	Truncated bool
	Addrs     []netip.Addr
}

// DNSServer answers DNS questions on UDP and TCP according to a script.
type DNSServer struct {
	Addr   netip.AddrPort
	script func(Asked) Said

	mu  sync.Mutex
	got []Asked
}

// ServeDNS starts a server at ip, port 0 = any, until the test ends. Its sockets belong to the calling thread's
// namespace.
func ServeDNS(t *testing.T, at string, script func(Asked) Said) *DNSServer {
	t.Helper()
	tcp, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	s := &DNSServer{Addr: tcp.Addr().(*net.TCPAddr).AddrPort(), script: script}
	udp, err := net.ListenPacket("udp", s.Addr.String())
	if err != nil {
		tcp.Close()
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.serveUDP(udp) })
	wg.Go(func() { s.serveTCP(tcp) })
	t.Cleanup(func() {
		udp.Close()
		tcp.Close()
		wg.Wait()
	})
	return s
}

func (s *DNSServer) serveUDP(c net.PacketConn) {
	b := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		if m := s.answer(b[:n], false); m != nil {
			c.WriteTo(m, from)
		}
	}
}

func (s *DNSServer) serveTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err == nil {
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(c, q); err == nil {
				if m := s.answer(q, true); m != nil {
					c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
				}
			}
		}
		c.Close()
	}
}

func (s *DNSServer) answer(query []byte, tcp bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	a := Asked{q.Name.String(), q.Type, tcp, binary.BigEndian.Uint16(query[10:]) > 0}
	s.mu.Lock()
	s.got = append(s.got, a)
	s.mu.Unlock()
	say := s.script(a)
	if say.Drop {
		return nil
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID:                 h.ID,
		Response:           true,
		RecursionAvailable: true,
		RCode:              say.RCode,
		Truncated:          say.Truncated,
	})
	b.StartQuestions()
	b.Question(q)
	b.StartAnswers()
	for _, ip := range say.Addrs {
		rh := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60}
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			b.AResource(rh, dnsmessage.AResource{A: ip.As4()})
		case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
			b.AAAAResource(rh, dnsmessage.AAAAResource{AAAA: ip.As16()})
		}
	}
	m, err := b.Finish()
	if err != nil {
		panic(err)
	}
	return m
}

// Asks returns the questions so far.
func (s *DNSServer) Asks() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// Always is a script that gives every question the same answer.
func Always(say Said) func(Asked) Said { return func(Asked) Said { return say } }
