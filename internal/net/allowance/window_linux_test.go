package allowance

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// firstWindow is how many bytes a connection may receive before anything is reserved for it.
const firstWindow = 64 << 10

// info returns the kernel's record of a connection.
func info(t *testing.T, c net.Conn) *unix.TCPInfo {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var i *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { i, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return i
}

// option returns a socket option of a connection.
func option(t *testing.T, c net.Conn, name int) (n int) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, name) }); e != nil {
		t.Fatal(e)
	}
	if errors.Is(err, unix.ENOPROTOOPT) {
		t.Skip("Linux before 5.14 does not tell")
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestInFlight: the bytes that servers have sent and may still send never exceed the limit, however slow the readers are.
func TestInFlight(t *testing.T) {
	for name, month := range map[string]int64{"near the limit from the start": 5_000_000, "far from it at first": margin + 40<<20} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			b, changed := s.open(month)
			defer b.Close()
			s.wait(changed)
			var all []net.Conn
			// Each connection is read until its window is wide, and then no longer. The last one is read to the end.
			for range 5 {
				c := s.endless(b)
				if _, err := io.CopyN(io.Discard, c, month/20); err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
			if _, err := io.Copy(io.Discard, all[4]); !errors.Is(err, ErrSpent) {
				t.Fatal(err)
			}
			sent := int64(0)
			for _, c := range all {
				i := info(t, c)
				sent += int64(i.Bytes_received) + int64(i.Rcv_wnd)
			}
			t.Logf("%d bytes may arrive, counted as %d of %d", sent, charged(sent), month)
			if charged(sent) > month+firstWindow {
				t.Errorf("%d bytes may arrive, counted as %d of %d", sent, charged(sent), month)
			}
			for _, c := range all {
				c.Close()
			}
			if used := s.of(b).used; used < charged(sent) || used > month {
				t.Errorf("counted as %d when all are closed, %d of %d may arrive", used, charged(sent), month)
			}
		})
	}
}

// of returns a copy of the account.
func (s *shelf) of(b *Accounts) account {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.accounts["lte"]
}

// TestManyConnections: idle connections may reserve everything that is left, but do not keep it forever.
func TestManyConnections(t *testing.T) {
	s := newShelf(t)
	b, changed := s.open(5_000_000)
	defer b.Close()
	s.wait(changed)
	first := s.endless(b)
	if _, err := first.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	for len(changed) == 0 && len(idle) < 1000 {
		idle = append(idle, s.silent(b))
		runtime.Gosched()
	}
	s.wait(changed)
	if n, bounded := b.Left("lte"); n != 0 || !bounded {
		t.Errorf("%d left, but %d connections have reserved it", n, len(idle))
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, ErrSpent) {
		t.Errorf("read: %v", err)
	}
	for a := s.of(b); a.free() <= 0; a = s.of(b) {
		idle[0].Close()
		idle = idle[1:]
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, ErrSpent) {
		t.Errorf("read when a little has been given back: %v", err)
	}
	for _, c := range idle {
		c.Close()
	}
	s.wait(changed)
	if n, _ := b.Left("lte"); n < 4_900_000 {
		t.Errorf("%d left when nothing is reserved any more", n)
	}
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Errorf("read when nothing is reserved any more: %v", err)
	}
}

// TestFar: far from the limit the kernel sizes the buffers; in the next month it does so again.
func TestFar(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO")
	}
	s := newShelf(t)
	const month = margin + 16<<20
	b, changed := s.open(month)
	defer b.Close()
	s.wait(changed)
	c := s.endless(b)
	if n := b.Buffer("lte"); n != 0 {
		t.Errorf("far: a new connection gets a buffer of %d", n)
	}
	if lock := option(t, c, unix.SO_BUF_LOCK); lock != 0 {
		t.Errorf("far: the buffer is fixed: %d", lock)
	}
	if _, err := io.CopyN(io.Discard, c, 32<<20); err != nil {
		t.Fatal(err)
	}
	if lock := option(t, c, unix.SO_BUF_LOCK); lock != unix.SOCK_RCVBUF_LOCK {
		t.Errorf("near: the buffer is not fixed: %d", lock)
	}
	if n := b.Buffer("lte"); n < leastBuffer/2 || n > month/128 {
		t.Errorf("near: a new connection gets a buffer of %d", n)
	}
	s.at("2026-12-01")
	b.hurry()
	for end := time.Now().Add(limit); b.Buffer("lte") != 0; {
		if time.Now().After(end) {
			t.Fatal("near in a new month")
		}
		runtime.Gosched()
	}
	if lock := option(t, c, unix.SO_BUF_LOCK); lock != 0 {
		t.Errorf("a new month: the buffer is fixed: %d", lock)
	}
}

// TestNewcomers: connections that are never read also fill their buffers.
func TestNewcomers(t *testing.T) {
	s := newShelf(t)
	const month = margin + 8<<20
	b, changed := s.open(month)
	defer b.Close()
	s.wait(changed)
	windows := int64(0)
	for b.Buffer("lte") == 0 {
		if windows > month-margin {
			t.Fatalf("the kernel still sizes the buffers of %d bytes", windows)
		}
		windows += int64(option(t, s.silent(b), unix.SO_RCVBUF))
	}
}

// TestOwed: bytes that a connection has not read when it is closed count, and so do those in flight.
func TestOwed(t *testing.T) {
	const (
		closeWait = 8
		buffer    = 200_000
	)
	tests := []struct {
		name  string
		asked bool
		info  unix.TCPInfo
		want  int64
	}{
		{"all is read, and the peer has ended", true, unix.TCPInfo{State: closeWait, Bytes_received: 1000, Rcv_wnd: 5000}, 0},
		{"the peer has ended", true, unix.TCPInfo{State: closeWait, Bytes_received: 1700, Rcv_wnd: 5000}, 700},
		{"the peer sends", true, unix.TCPInfo{State: established, Bytes_received: 1700, Rcv_wnd: 5000}, 5700},
		{"we have ended", true, unix.TCPInfo{State: finWait1, Bytes_received: 1700, Rcv_wnd: 5000}, 5700},
		{"the peer knows that we have ended", true, unix.TCPInfo{State: finWait2, Bytes_received: 1700, Rcv_wnd: 5000}, 5700},
		{"the peer speaks first", false, unix.TCPInfo{State: established, Bytes_received: 1700, Rcv_wnd: 5000}, 5700},
		{"asked, no answer yet", true, unix.TCPInfo{State: established, Rcv_wnd: 5000}, 5000},
		{"nothing was asked", false, unix.TCPInfo{State: established, Rcv_wnd: 5000}, 0},
		{"silent", true, unix.TCPInfo{State: established, Bytes_received: 1700, Rcv_wnd: 5000, Last_data_recv: 10_000, Last_data_sent: 11_000}, 700},
		{"asked again", true, unix.TCPInfo{State: established, Bytes_received: 1700, Rcv_wnd: 5000, Last_data_recv: 10_000, Last_data_sent: 20}, 5700},
		{"an old kernel", true, unix.TCPInfo{State: established, Bytes_received: 1700}, buffer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read := int64(1000)
			if tt.info.Bytes_received == 0 {
				read = 0
			}
			if n := owed(&tt.info, read, tt.asked, buffer); n != tt.want {
				t.Errorf("%d, want %d", n, tt.want)
			}
		})
	}
}
