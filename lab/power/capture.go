package power

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/tributary-http/tributary/internal/core/energy"
)

// Capture is the energy that a radio would use for the packets in a file.
type Capture struct {
	Device  string  `json:"radio"` // such as galaxy-s3/lte
	Packets int     `json:"packets"`
	Up      int64   `json:"up_bytes"`
	Down    int64   `json:"down_bytes"`
	Seconds float64 `json:"seconds"` // time from the first to the last packet
	Wakeups int     `json:"wakeups"`
	Radio   float64 `json:"radio_joules"` // without those used when idle
	energy.Joules
}

// packet is the part of a packet that the model of a radio needs.
type packet struct {
	at       time.Time
	length   int64 // on the wire
	src, dst netip.Addr
	outgoing bool // set by the capture, if it is cooked
	cooked   bool
}

// ReadCapture reads a file in pcap or pcapng format, as written by tcpdump and Wireshark, and returns the energy that a
// radio would have used for its packets, including the last tail. A packet goes up if the file says so, or if it comes
// from the address that is an end of the most packets; of two such addresses, from the one that sent the first packet.
func ReadCapture(name, radio string) (Capture, error) {
	r, err := energy.FindRadio(radio)
	if err != nil {
		return Capture{}, err
	}
	ends := map[netip.Addr]int{}
	var first netip.Addr
	if err := packets(name, func(p packet) {
		if !p.src.IsValid() {
			return
		}
		if !first.IsValid() {
			first = p.src
		}
		ends[p.src]++
		ends[p.dst]++
	}); err != nil {
		return Capture{}, err
	}
	local := first
	for a, n := range ends {
		if n > ends[local] {
			local = a
		}
	}

	c := Capture{Device: radio}
	m := energy.Meter{Radio: *r}
	var begin, end time.Time
	if err := packets(name, func(p packet) {
		up, down := int64(0), p.length
		if p.cooked && p.outgoing || !p.cooked && p.src.IsValid() && p.src == local {
			up, down = down, up
		}
		if c.Packets == 0 {
			begin = p.at
		}
		end = p.at
		c.Packets++
		c.Up += up
		c.Down += down
		m.Add(p.at, up, down)
	}); err != nil {
		return Capture{}, err
	}
	c.Seconds = end.Sub(begin).Seconds()
	c.Wakeups, c.Joules = m.Wakeups(), m.Settled()
	c.Radio = c.Joules.Radio()
	return c, nil
}

// source reads packets from a file of either format.
type source interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

// packets calls do for each packet of a file in turn. If the file ends within a packet, that packet is ignored, since
// tcpdump may have been killed.
func packets(name string, do func(packet)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	src, linkType, err := open(in)
	if err != nil {
		return fmt.Errorf("%s is not a packet capture: %w; create one with tcpdump -w", name, err)
	}
	var (
		eth   layers.Ethernet
		sll   layers.LinuxSLL
		sll2  layers.LinuxSLL2
		ip4   layers.IPv4
		ip6   layers.IPv6
		types []gopacket.LayerType
	)
	begins := layers.LayerTypeEthernet
	switch linkType {
	case layers.LinkTypeLinuxSLL:
		begins = layers.LayerTypeLinuxSLL
	case layers.LinkTypeLinuxSLL2:
		begins = layers.LayerTypeLinuxSLL2
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, 12: // tcpdump writes 12 for raw IP on Linux
		begins = layers.LayerTypeIPv4
	case layers.LinkTypeIPv6:
		begins = layers.LayerTypeIPv6
	case layers.LinkTypeEthernet:
	default:
		return fmt.Errorf("%s: captures of %s are not supported; capture on one interface, for example wlan0", name,
			linkType)
	}
	parser := gopacket.NewDecodingLayerParser(begins, &eth, &sll, &sll2, &ip4, &ip6)
	parser.IgnoreUnsupported = true
	six := gopacket.NewDecodingLayerParser(layers.LayerTypeIPv6, &ip6)
	six.IgnoreUnsupported = true
	for {
		data, info, err := src.ZeroCopyReadPacketData()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		p := packet{at: info.Timestamp, length: int64(info.Length)}
		with := parser
		if begins == layers.LayerTypeIPv4 && len(data) > 0 && data[0]>>4 == 6 {
			with = six
		}
		_ = with.DecodeLayers(data, &types) // a packet that cannot be decoded still has its bytes
		for _, t := range types {
			switch t {
			case layers.LayerTypeLinuxSLL:
				p.cooked, p.outgoing = true, sll.PacketType == layers.LinuxSLLPacketTypeOutgoing
			case layers.LayerTypeLinuxSLL2:
				p.cooked, p.outgoing = true,
					sll2.PacketType == layers.LinuxSLL2PacketType(layers.LinuxSLLPacketTypeOutgoing)
			case layers.LayerTypeIPv4:
				p.src, p.dst = addr(ip4.SrcIP), addr(ip4.DstIP)
			case layers.LayerTypeIPv6:
				p.src, p.dst = addr(ip6.SrcIP), addr(ip6.DstIP)
			}
		}
		do(p)
	}
}

func addr(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// open distinguishes the formats by their first bytes.
func open(in *bufio.Reader) (source, layers.LinkType, error) {
	magic, err := in.Peek(4)
	if err != nil {
		return nil, 0, err
	}
	if string(magic) == "\x0a\x0d\x0d\x0a" {
		r, err := pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, 0, err
		}
		return r, r.LinkType(), nil
	}
	r, err := pcapgo.NewReader(in)
	if err != nil {
		return nil, 0, err
	}
	return r, r.LinkType(), nil
}
