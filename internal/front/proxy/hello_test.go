package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/front/inbound"
)

// hello returns the bytes with which a TLS client begins.
func hello(t testing.TB, name string) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		defer near.Close()
		_ = tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: name == ""}).Handshake() // it is not answered
	}()
	b := make([]byte, maxHello)
	n, err := far.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// records splits a handshake message of one record into several.
func records(b []byte, sizes ...int) (all []byte) {
	message := b[tlsRecord:]
	for i, n := range sizes {
		if i == len(sizes)-1 || n > len(message) {
			n = len(message)
		}
		all = append(all, inbound.TLSHandshake, 3, 1)
		all = binary.BigEndian.AppendUint16(all, uint16(n))
		all = append(all, message[:n]...)
		message = message[n:]
	}
	return all
}

func TestHelloName(t *testing.T) {
	plain := hello(t, "CDN.Example.com")
	unnamed := hello(t, "")
	evil := bytes.Replace(hello(t, "evil.example"), []byte("evil.example"), []byte("evil/\x00xample"), 1)
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"R163 a name", plain, "cdn.example.com"},
		{"R163 no name", unnamed, ""},
		{"R163 bytes that no name has", evil, ""},
		{"R163 in three records", records(plain, 3, 100, 0), "cdn.example.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := range c.in {
				if whole, possible := wholeHello(c.in[:n]); whole || !possible {
					t.Fatalf("after %d bytes of %d: whole %v, possible %v", n, len(c.in), whole, possible)
				}
			}
			if whole, _ := wholeHello(c.in); !whole {
				t.Fatal("not whole")
			}
			if got := helloName(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		name string
		in   []byte
	}{
		{"not TLS", []byte("SSH-2.0")},
		{"an alert", []byte{21, 3, 1, 0, 2, 2, 40}},
		{"an empty record", []byte{22, 3, 1, 0, 0}},
		{"a record that is too long", []byte{22, 3, 1, 0xff, 0xff}},
		{"too many records", records(plain, 1, 1, 1, 1, 0)},
		{"a message that needs more", append([]byte{22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff}, make([]byte, maxHello)...)},
	} {
		if whole, possible := wholeHello(c.in); whole || possible {
			t.Errorf("R163 %s: whole %v, possible %v", c.name, whole, possible)
		}
	}
}

// TestServerName peeks at connections of hostile clients: the time and the number of looks are bounded, and the bytes stay.
func TestServerName(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, c := range []struct {
		name string
		send func(c net.Conn, hello []byte)
		want string
	}{
		{"R163 at once", func(c net.Conn, hello []byte) { _, _ = c.Write(hello) }, "cdn.example.com"},
		{"R163 in two parts", func(c net.Conn, hello []byte) { _, _ = c.Write(hello[:50]); _, _ = c.Write(hello[50:]) }, "cdn.example.com"},
		{"R163 half of it, then silence", func(c net.Conn, hello []byte) { _, _ = c.Write(hello[:50]) }, ""},
		{"R163 half of it, then the end", func(c net.Conn, hello []byte) { _, _ = c.Write(hello[:50]); _ = c.(*net.TCPConn).CloseWrite() }, ""},
		{"R163 a record that never ends", func(c net.Conn, _ []byte) {
			_, _ = c.Write(append([]byte{22, 3, 1, 0x40, 0}, bytes.Repeat([]byte{1, 0xff}, maxHello)...))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			nc, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			b := hello(t, "cdn.example.com")
			c.send(client, b)
			if got := serverName(nc.(*net.TCPConn), 100*time.Millisecond); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			first := make([]byte, 5)
			if _, err := nc.Read(first); err != nil || first[0] != inbound.TLSHandshake {
				t.Errorf("the bytes are gone: %x, %v", first, err)
			}
		})
	}
}

// TestPeek: a client that sends its first bytes one by one gets a limited number of looks.
func TestPeek(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	send := func() { _, _ = client.Write([]byte{inbound.TLSHandshake}) }
	send()
	looks := 0
	peek(nc.(*net.TCPConn), make([]byte, 4*maxLooks), 20*time.Second, func([]byte) bool {
		if looks++; looks < 3*maxLooks {
			send()
		}
		return looks == 3*maxLooks
	})
	if looks > maxLooks {
		t.Errorf("R163 %d looks", looks)
	}
}

func FuzzHelloName(f *testing.F) {
	f.Add(hello(f, "example.com"))
	f.Add(records(hello(f, "example.com"), 1, 0))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, possible := wholeHello(b)
		if whole && possible || possible && len(b) >= maxHelloRecords*maxHello {
			t.Errorf("whole %v, possible %v", whole, possible)
		}
		if name := helloName(b); len(name) > 253 || name != strings.ToLower(name) || strings.ContainsFunc(name, notInHost) {
			t.Errorf("name %q", name)
		}
	})
}
