package netlab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ReboundName is the name of a hostile page; it resolves to the loopback addresses of the machine that asks.
const ReboundName = "rebound." + OriginName

// DNS is a name server in the server namespace. It knows OriginName, all names below it, ReboundName, and PublicNames;
// it answers over UDP and TCP at the origin's and at every link's address.
type DNS struct {
	closers []io.Closer
	running sync.WaitGroup

	mu      sync.Mutex
	queries []Query
	nat64   bool // ipv4only.arpa reveals NAT64Prefix
}

// Query is a question that a DNS server received.
type Query struct {
	Link    string // link that the question arrived on
	Network string // "udp" or "tcp"
	Name    string // without the final dot
	Type    string // "A", "AAAA", ...
}

// nat64Name is the name that reveals the prefix of a network's NAT64 (RFC 7050).
const nat64Name = "ipv4only.arpa"

const (
	dnsTTL     = 60              // seconds
	dnsTimeout = 5 * time.Second // for an idle TCP connection
)

// StartDNS starts a name server. It runs until the lab's Close.
func (l *Lab) StartDNS() (*DNS, error) {
	d := &DNS{}
	for _, link := range l.links {
		if err := l.server.enter(func() error { return d.listen(link) }); err != nil {
			return nil, errors.Join(fmt.Errorf("dns on %s: %w", link.Name, err), d.close())
		}
	}
	l.closers = append(l.closers, d.close)
	return d, nil
}

// listen opens the sockets of one link. They are bound to its interface and so show which link a query arrived on.
func (d *DNS) listen(link *Link) error {
	lc := net.ListenConfig{Control: bindTo(link.serverName())}
	pc, err := lc.ListenPacket(context.Background(), "udp", ":53")
	if err != nil {
		return err
	}
	d.closers = append(d.closers, pc)
	tcp, err := lc.Listen(context.Background(), "tcp", ":53")
	if err != nil {
		return err
	}
	d.closers = append(d.closers, tcp)
	d.running.Go(func() { d.serveUDP(pc, link.Name) })
	d.running.Go(func() { d.serveTCP(tcp, link.Name) })
	return nil
}

func (d *DNS) close() error {
	var errs []error
	for _, c := range d.closers {
		errs = append(errs, c.Close())
	}
	d.running.Wait()
	return errors.Join(errs...)
}

// Queries returns the queries so far.
func (d *DNS) Queries() []Query {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Query(nil), d.queries...)
}

func (d *DNS) serveUDP(pc net.PacketConn, link string) {
	buf := make([]byte, 1500)
	// A reply must leave from the address that the query was sent to. The sockets listen on all addresses, so the
	// control message identifies it.
	conn, ok := pc.(*net.UDPConn)
	if !ok || wantDestination(conn) != nil {
		return
	}
	oob := make([]byte, 128)
	for {
		n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if reply, err := d.answer(buf[:n], link, "udp"); err == nil {
			// the client retries after a lost reply
			_, _, _ = conn.WriteMsgUDPAddrPort(reply, replySource(oob[:oobn]), from)
		}
	}
}

func (d *DNS) serveTCP(ln net.Listener, link string) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			conns.Go(func() { d.serveConn(conn, link) })
		}
	}
}

// serveConn answers the queries of one TCP connection (RFC 7766: each is preceded by its length).
func (d *DNS) serveConn(conn net.Conn, link string) {
	defer conn.Close()
	for {
		var length [2]byte
		_ = conn.SetDeadline(time.Now().Add(dnsTimeout))
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := d.answer(query, link, "tcp")
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// answer logs a query and returns the reply.
func (d *DNS) answer(query []byte, link, network string) ([]byte, error) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	d.mu.Lock()
	d.queries = append(d.queries, Query{
		Link: link, Network: network, Name: name, Type: strings.TrimPrefix(q.Type.String(), "Type"),
	})
	prefix := d.nat64 && name == nat64Name
	d.mu.Unlock()

	head.Response, head.Authoritative, head.RecursionAvailable = true, true, true
	public := slices.Contains(PublicNames, name)
	known := name == OriginName || strings.HasSuffix(name, "."+OriginName) || public || prefix
	if !known {
		head.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, head)
	errs := []error{b.StartQuestions(), b.Question(q), b.StartAnswers()}
	rr := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: dnsTTL}
	v4, v6 := OriginAddr, OriginAddr6
	if name == ReboundName {
		v4, v6 = netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()
	}
	if public {
		v4 = PublicAddr
	}
	if prefix {
		v4 = netip.MustParseAddr("192.0.0.170")
		v6 = netip.AddrFrom16([16]byte(append(NAT64Prefix.Addr().AsSlice()[:12], v4.AsSlice()...)))
	}
	switch {
	case !known:
	case q.Type == dnsmessage.TypeA:
		errs = append(errs, b.AResource(rr, dnsmessage.AResource{A: v4.As4()}))
	case q.Type == dnsmessage.TypeAAAA && !public:
		errs = append(errs, b.AAAAResource(rr, dnsmessage.AAAAResource{AAAA: v6.As16()}))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return b.Finish()
}
