package link

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a connection.
func pair(t *testing.T, l net.Listener) (near, far *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	o, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return c.(*net.TCPConn), o.(*net.TCPConn)
}

func TestConns(t *testing.T) {
	if UnderQEMU {
		t.Skip("qemu-user has no TCP_INFO")
	}
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const short = 30 * time.Millisecond
	t.Run("what comes is heard", func(t *testing.T) {
		var c Conns
		near, far := pair(t, l)
		c.Add(Link{Name: "a"}, near)
		if !c.Heard("a", time.Hour) || c.Heard("a", 0) || c.Heard("b", time.Hour) {
			t.Error("want a connection over a, made within an hour, and none over b")
		}
		for heard := false; !heard; { // a busy machine may take longer than short to look
			for c.Heard("a", short) {
				if _, err := near.Write([]byte("sent is not received")); err != nil {
					t.Fatal(err)
				}
				_ = near.SetReadDeadline(time.Now().Add(short))
				if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal(err)
				}
			}
			_ = near.SetReadDeadline(time.Time{})
			if _, err := far.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(near, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			heard = c.Heard("a", short)
		}
	})
	t.Run("R207 hosts of the link's own networks say nothing of its uplink", func(t *testing.T) {
		for _, near := range []string{"127.0.0.0/8", "127.0.0.1/32"} { // loopback stands for the network of the link
			var c Conns
			conn, _ := pair(t, l)
			c.Add(Link{Name: "a", Prefixes: []netip.Prefix{netip.MustParsePrefix(near)}}, conn)
			if c.Heard("a", time.Hour) {
				t.Errorf("a host in %s is heard", near)
			}
		}
	})
	t.Run("closed connections are not asked, and forgotten", func(t *testing.T) {
		var c Conns
		var open []*net.TCPConn
		for range 3 * fewConns {
			near, _ := pair(t, l)
			c.Add(Link{Name: "a"}, near)
			near.Close()
			open = append(open, near) // keeps the garbage collector from freeing it
		}
		if c.Heard("a", time.Hour) {
			t.Error("a closed connection was heard")
		}
		if n := len(c.over["a"].conns); n > fewConns {
			t.Errorf("%d of %d closed connections are kept", n, len(open))
		}
	})
	t.Run("open connections are kept", func(t *testing.T) {
		var c Conns
		var open []*net.TCPConn
		for range 2 * fewConns {
			near, _ := pair(t, l)
			c.Add(Link{Name: "a"}, near)
			open = append(open, near)
		}
		if n := len(c.over["a"].conns); n != len(open) {
			t.Errorf("%d of %d open connections are known", n, len(open))
		}
	})
}

func TestNear(t *testing.T) {
	l := Link{Prefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.16/28"), netip.MustParsePrefix("2001:db8:1::/64")}}
	for addr, near := range map[string]bool{
		"192.168.1.1": true, "10.0.0.1": true, "172.16.0.1": true, "169.254.0.1": true, "fe80::1%eth0": true, "fd00::1": true,
		"203.0.113.17": true, "::ffff:203.0.113.17": true, "2001:db8:1::1": true, "203.0.113.1": false, "2001:db8:2::1": false,
		"::ffff:192.168.1.1": true, "172.32.0.1": false, "192.0.2.1": false,
	} {
		if got := l.Near(netip.MustParseAddr(addr)); got != near {
			t.Errorf("R207 %s: %v", addr, got)
		}
	}
}

// TestPress: the other end of an idle connection answers the kernel, and is left alone afterwards.
func TestPress(t *testing.T) {
	if UnderQEMU {
		t.Skip("qemu-user has no TCP_INFO")
	}
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, _ := pair(t, l)
	before := net.KeepAliveConfig{Enable: true, Idle: time.Hour, Interval: time.Minute, Count: 9}
	if err := near.SetKeepAliveConfig(before); err != nil {
		t.Fatal(err)
	}
	option := func(name int) (value time.Duration) {
		rc, err := near.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = rc.Control(func(fd uintptr) {
			n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name)
			if err != nil {
				t.Error(err)
			}
			value = time.Duration(n) * time.Second
		})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	carried := VitalsOf(near).Carried
	relax := Press(near)
	if relax == nil {
		t.Fatal("the kernel refuses")
	}
	longest := time.Duration(0)
	for is := VitalsOf(near); is.Heard >= longest; is = VitalsOf(near) { // until an answer arrives
		longest = is.Heard
		_ = near.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if is := VitalsOf(near); is.Owed || is.Carried != carried {
		t.Errorf("%+v, want %d carried and nothing owed", is, carried)
	}
	relax()
	if idle, interval := option(unix.TCP_KEEPIDLE), option(unix.TCP_KEEPINTVL); idle != before.Idle || interval != before.Interval {
		t.Errorf("afterwards one is sent after %v, then every %v, want %+v", idle, interval, before)
	}
	near.Close()
	if Press(near) != nil || VitalsOf(near) != (Vitals{}) {
		t.Error("a closed connection has vitals")
	}
}
