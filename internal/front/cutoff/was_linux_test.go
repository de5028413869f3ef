package cutoff

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWasReset: a reset is noticed even if another call got the error.
func TestWasReset(t *testing.T) {
	for _, reset := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := near.(*net.TCPConn)
		if WasReset(c) {
			t.Error("at the beginning")
		}
		if reset {
			Reset(far)
			raw, err := c.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			_ = raw.Control(func(fd uintptr) {
				for code := 0; code == 0 && err == nil; { // until the reset has arrived
					code, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		} else {
			far.Close()
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF || WasReset(c) != reset {
			t.Errorf("reset %v: %v, %v", reset, err, WasReset(c))
		}
	}
}
