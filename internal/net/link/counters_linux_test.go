package link

import (
	"io"
	"net"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"
)

// TestReceived: the counters of an interface and of a connection grow with what is received, in the namespace of the process.
func TestReceived(t *testing.T) {
	if UnderQEMU {
		t.Skip("qemu-user has neither RTM_GETSTATS nor TCP_INFO")
	}
	if !Inside(t) {
		return
	}
	lo, err := net.InterfaceByName("lo")
	Must(t, err)
	l, err := net.Listen("tcp", anyPort)
	Must(t, err)
	defer l.Close()
	near, far := pair(t, l)
	link := Link{Name: "lo", Index: lo.Index}
	all, ok := link.Received()
	one, known := Received(near)
	if !ok || !known {
		t.Fatalf("no counters: interface %v, connection %v", ok, known)
	}
	const size = 300_000
	go far.Write(make([]byte, size))
	_, err = io.CopyN(io.Discard, near, size)
	Must(t, err)
	after, _ := link.Received()
	if n := (Counters{after.Packets - all.Packets, after.Bytes - all.Bytes}); n.Packets < 2 || n.Bytes < size || n.Bytes > 2*size {
		t.Errorf("the interface has received %+v", n)
	}
	then, _ := Received(near)
	if n := (Counters{then.Packets - one.Packets, then.Bytes - one.Bytes}); n.Bytes != size || n.Packets < 2 || n.Packets > after.Packets-all.Packets {
		t.Errorf("the connection has received %+v", n)
	}
	near.Close()
	if n, ok := Received(near); ok {
		t.Errorf("a closed connection has received %+v", n)
	}
	if n, ok := (Link{Name: "app"}).Received(); ok {
		t.Errorf("no interface has received %+v", n)
	}
	if n, ok := (Link{Name: "gone", Index: 4711}).Received(); ok {
		t.Errorf("an interface that is gone has received %+v", n)
	}
}
