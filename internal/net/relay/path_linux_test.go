package relay

import (
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRestartControl: BBR looks for the rate again as in a new connection; other congestion control stays as it is.
func TestRestartControl(t *testing.T) {
	const startup = 739 // BBR's pacing gain at the beginning, in 1/256
	if !mayUse("bbr") {
		t.Skip("this kernel has no BBR, or this user may not choose it")
	}
	for _, name := range []string{"bbr", "reno"} {
		c, raw := drained(t, name)
		gain := func() (g uint32) {
			_ = raw.Control(func(fd uintptr) {
				if info, err := unix.GetsockoptTCPCCBBRInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_CC_INFO); err == nil {
					g = info.Pacing_gain
				}
			})
			return g
		}
		for sent := 0; name == "bbr" && (gain() == 0 || gain() == startup); sent++ {
			if _, err := c.Write(make([]byte, 64<<10)); err != nil || sent > 10_000 {
				t.Fatalf("BBR still looks for the rate after %d writes: %v", sent, err)
			}
		}
		for info, ok := tcpInfo(raw); !ok || info.Unacked+info.Notsent_bytes > 0; info, ok = tcpInfo(raw) {
			runtime.Gosched() // acknowledgments would end the search before it is seen
		}
		restartControl(raw)
		if g := gain(); name == "bbr" && g != 0 && g != startup { // 0 before the first acknowledgment
			t.Errorf("pacing gain %d/256", g)
		}
		if is := controlOf(raw); is != name {
			t.Errorf("%s has become %s", name, is)
		}
	}
}

// drained returns a connection with a congestion control, whose other end reads everything.
func drained(t *testing.T, control string) (net.Conn, syscall.RawConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	go io.Copy(io.Discard, other)
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { err = setControl(int(fd), control) })
	if err != nil {
		t.Fatal(err)
	}
	return c, raw
}

// TestThreshold: slow start that ended without a loss says nothing about the link.
func TestThreshold(t *testing.T) {
	info := &unix.TCPInfo{Snd_ssthresh: 40, Snd_mss: 1448}
	if n := threshold(info); n != 0 {
		t.Errorf("%d bytes before a loss", n)
	}
	info.Total_retrans = 1
	if n := threshold(info); n != 40*1448 {
		t.Errorf("%d bytes after a loss", n)
	}
}
