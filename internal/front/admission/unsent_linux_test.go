package admission

import (
	"context"
	"net"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnsent: every guarded server bounds what the kernel buffers for a slow client.
func TestUnsent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	c := &Control{Limits: Limits{Each: 1, All: 1}}
	s := &http.Server{}
	c.Guard(s, nil, nil)
	s.ConnContext(context.Background(), near)
	raw, err := near.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if cerr := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT) }); cerr != nil || err != nil {
		t.Skip("the kernel does not tell:", cerr, err)
	}
	if n != Unsent {
		t.Errorf("the kernel buffers up to %d bytes, want %d", n, Unsent)
	}
}
