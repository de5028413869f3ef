package power_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/tributary-http/tributary/lab/power"
)

// sent is a packet in a capture written by a test.
type sent struct {
	at     time.Duration
	up     bool
	length int // on the wire
}

// data returns the first bytes of a packet, after a header of the link type.
func (s sent) data(t *testing.T, link layers.LinkType) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{203, 0, 113, 5}, DstIP: []byte{192, 168, 1, 7}}
	if s.up {
		ip.SrcIP, ip.DstIP = ip.DstIP, ip.SrcIP
	}
	b := gopacket.NewSerializeBuffer()
	eth := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}
	var err error
	if link == layers.LinkTypeEthernet {
		err = gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, eth, ip)
	} else {
		err = gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, ip)
	}
	if err != nil {
		t.Fatal(err)
	}
	if link == layers.LinkTypeLinuxSLL2 {
		header := make([]byte, 20) // protocol, reserved, interface, ARP type, packet type, length of the address, address
		binary.BigEndian.PutUint16(header, 0x0800)
		header[9], header[11] = 1, 6
		if s.up {
			header[10] = 4
		}
		return append(header, b.Bytes()...)
	}
	return b.Bytes()
}

func capture(t *testing.T, format string, link layers.LinkType, all []sent) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "packets."+format)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var write func(gopacket.CaptureInfo, []byte) error
	switch format {
	case "pcap":
		w := pcapgo.NewWriter(f)
		if err := w.WriteFileHeader(128, link); err != nil {
			t.Fatal(err)
		}
		write = w.WritePacket
	case "pcapng":
		w, err := pcapgo.NewNgWriter(f, link)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Flush()
		write = w.WritePacket
	}
	for _, s := range all {
		data := s.data(t, link)
		if err := write(gopacket.CaptureInfo{Timestamp: time.Unix(1e9, 0).Add(s.at), CaptureLength: len(data), Length: s.length}, data); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// A request of 500 bytes, an answer of 1500 bytes 0.1 s later, and another answer of 1500 bytes 0.05 s after that; the same again
// after 2 s, and a last byte down after a minute. Galaxy S III, RSRP -100 dBm, Rx 1.5355 W, Tx 2.2755 W.
//
// Active, twice: 0.1 s at (500 * 2.2755 + 1500 * 1.5355) / 2000 = 1.7205 W and 0.05 s at 1.5355 W: 0.17205 + 0.076775 = 0.248825
// J. Tails: after 1.85 s of silence 0.2 * 1.5355 + 0.4 * 0.7881 * 0.41 + 1.25 * 0.7881 * 45/320 = 0.3071 + 0.129248 + 0.138533 =
// 0.574881 J; then twice a whole one, 0.3071 + 0.129248 + 11 * 0.7881 * 45/320 = 1.655439 J. Promotions: two, 0.36 J each.
func TestReadCapture(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	all := []sent{
		{ms(0), true, 500},
		{ms(100), false, 1500},
		{ms(150), false, 1500},
		{ms(2000), true, 500},
		{ms(2100), false, 1500},
		{ms(2150), false, 1500},
		{ms(62000), false, 60},
	}
	for _, c := range []struct {
		format string
		link   layers.LinkType
	}{
		{"pcap", layers.LinkTypeEthernet}, {"pcapng", layers.LinkTypeEthernet}, {"pcap", layers.LinkTypeLinuxSLL2}, {"pcap", layers.LinkTypeRaw},
	} {
		t.Run(c.format+" "+c.link.String(), func(t *testing.T) {
			got, err := power.ReadCapture(capture(t, c.format, c.link, all), "galaxy-s3/lte")
			if err != nil {
				t.Fatal(err)
			}
			if got.Packets != 7 || got.Up != 1000 || got.Down != 6060 || got.Wakeups != 2 || math.Abs(got.Seconds-62) > 1e-6 {
				t.Errorf("%+v", got)
			}
			within(t, "active", got.Active, 2*0.248825, 1e-5)
			within(t, "tail", got.Tail, 0.574881+2*1.655439, 1e-5)
			within(t, "promotion", got.Promotion, 0.72, 1e-5)
			within(t, "radio", got.Radio, 2*0.248825+0.574881+2*1.655439+0.72, 1e-5)
		})
	}
	t.Run("cut short", func(t *testing.T) {
		name := capture(t, "pcap", layers.LinkTypeEthernet, all)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, info.Size()-10); err != nil {
			t.Fatal(err)
		}
		if got, err := power.ReadCapture(name, "galaxy-s3/lte"); err != nil || got.Packets != 6 {
			t.Errorf("%+v, %v: want what comes before the cut", got, err)
		}
	})
	t.Run("not a packet capture", func(t *testing.T) {
		for _, text := range []string{"", "GET / HTTP/1.1", "\xd4\xc3\xb2\xa1"} {
			name := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := power.ReadCapture(name, "galaxy-s3/wifi"); err == nil || !strings.Contains(err.Error(), "tcpdump -w") {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// FuzzReadCapture: no file makes the reader panic.
func FuzzReadCapture(f *testing.F) {
	f.Add([]byte("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x01\x00\x00\x00"))
	f.Add([]byte("\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := power.ReadCapture(name, "galaxy-s3/wifi"); err == nil && (c.Radio < 0 || c.Up+c.Down < 0) {
			t.Errorf("%+v", c)
		}
	})
}
