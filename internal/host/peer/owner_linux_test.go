package peer

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also the program of another user: it connects to the address in TRIBUTARY_PEER and waits for the end of its
// input.
func TestMain(m *testing.M) {
	if addr := os.Getenv("TRIBUTARY_PEER"); addr != "" {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = c.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func addrs(c net.Conn) (local, remote netip.AddrPort) {
	return c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
}

// pair returns both ends of a connection over loopback.
func pair(t *testing.T, network, at string) (client, server *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Skipf("listen on %s: %v", at, err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func TestOwner(t *testing.T) {
	me := uint32(os.Getuid())
	ways := map[string]func(local, remote netip.AddrPort) (socket, error){
		"sock_diag": func(l, r netip.AddrPort) (socket, error) { return diagnose(unmap(r), unmap(l)) },
		"/proc/net": func(l, r netip.AddrPort) (socket, error) { return search(unmap(r), unmap(l)) },
	}
	for name, find := range ways {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			t.Run("R185 "+name+" "+at, func(t *testing.T) {
				c, s := pair(t, "tcp", at)
				local, remote := addrs(s)
				if _, err := find(local, remote); errors.Is(err, unix.EPROTONOSUPPORT) {
					t.Skip(err) // qemu-user has no sock_diag, and apps on Android may not use it
				}
				want := func(what string, held bool) {
					t.Helper()
					got, err := find(local, remote)
					if err != nil || got.held() != held || held && got.uid != me {
						t.Errorf("%s: %+v, %v", what, got, err)
					}
				}
				want("established", true)
				_ = c.CloseWrite()
				want("half closed by the client", true)
				_ = s.CloseWrite()
				_, _ = c.Read(make([]byte, 1)) // the FIN has arrived
				if got, err := find(local, remote); err == nil && got.held() {
					t.Errorf("closed: %+v", got)
				}
			})
		}
	}
	t.Run("R185 nobody is there", func(t *testing.T) {
		c, s := pair(t, "tcp", "127.0.0.1:0")
		local, remote := addrs(s)
		for _, wrong := range []netip.AddrPort{
			netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), remote.Port()),
			netip.AddrPortFrom(remote.Addr(), local.Port()),
			netip.MustParseAddrPort("[::1]:1"),
		} {
			if uid, err := Owner(local, wrong); !errors.Is(err, ErrUnknown) {
				t.Errorf("%v: uid %d, %v", wrong, uid, err)
			}
		}
		_ = c.Close()
		_, _ = s.Read(make([]byte, 1))
		if uid, err := Owner(local, remote); !errors.Is(err, ErrUnknown) {
			t.Errorf("an orphan: uid %d, %v", uid, err)
		}
	})
	t.Run("R185 an IPv6 socket with an IPv4 connection", func(t *testing.T) {
		_, s := pair(t, "tcp", "[::]:0") // its addresses are v4-mapped for the kernel
		local, remote := addrs(s)
		if uid, err := Owner(local, remote); err != nil || uid != me {
			t.Errorf("uid %d, %v", uid, err)
		}
		if uid, err := Owner(remote, local); err != nil || uid != me {
			t.Errorf("the other end: uid %d, %v", uid, err)
		}
	})
	t.Run("R185 another user", func(t *testing.T) {
		if me != 0 {
			t.Skip("needs root to run a program as another user")
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		const nobody = 65534
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "TRIBUTARY_PEER="+ln.Addr().String())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skipf("run this program as another user: %v", err)
		}
		defer func() { in.Close(); _ = cmd.Wait() }()
		s, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		local, remote := addrs(s)
		for name, find := range ways {
			if got, err := find(local, remote); err != nil || !got.held() || got.uid != nobody {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}

func TestScan(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:1F90 06 00000000:00000000 03:00000abc 00000000     0        0 0 3 0
   2: 0100007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 5678 1 0 20 4 30 10 -1
`
	if address("0100007F:1F90") != netip.MustParseAddrPort("127.0.0.1:8080") {
		t.Skip("the sample is of a little-endian machine")
	}
	proxy := netip.MustParseAddrPort("127.0.0.1:8080")
	for _, c := range []struct {
		name  string
		port  uint16
		found bool
		held  bool
	}{{"established", 40001, true, true}, {"TIME_WAIT says uid 0", 40000, true, false}, {"nobody", 40002, false, false}} {
		s, found, err := scan(strings.NewReader(table), netip.AddrPortFrom(proxy.Addr(), c.port), proxy)
		if found != c.found || err != nil || found && s.held() != c.held || c.held && s.uid != 1000 {
			t.Errorf("R185 %s: %+v, %v, %v", c.name, s, found, err)
		}
	}
	if a := address("0000000000000000FFFF00000100007F:0050"); a != netip.MustParseAddrPort("127.0.0.1:80") {
		t.Errorf("v4-mapped: %v", a)
	}
	if a := address("00000000000000000000000001000000:0050"); a != netip.MustParseAddrPort("[::1]:80") {
		t.Errorf("IPv6: %v", a)
	}
}

func BenchmarkOwner(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	c, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	local, remote := addrs(c)
	for b.Loop() {
		if _, err := Owner(remote, local); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAbandoned: a client that sends no more still holds its end, and one that closes its socket does not.
func TestAbandoned(t *testing.T) {
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
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	local, remote := server.LocalAddr().(*net.TCPAddr).AddrPort(), server.RemoteAddr().(*net.TCPAddr).AddrPort()
	if Abandoned(local, remote) {
		t.Error("the client is there")
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if Abandoned(local, remote) {
		t.Error("the client sends no more, and waits")
	}
	client.Close()
	for !Abandoned(local, remote) { // the socket may be orphaned a moment after its last segment
		runtime.Gosched()
	}
}
