package allowance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/conn"
)

const limit = 20 * time.Second // bounds every wait

// shelf is a file with Accounts, in a month set by the test.
type shelf struct {
	t    *testing.T
	path string
	now  atomic.Pointer[time.Time]
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t, path: filepath.Join(t.TempDir(), "folder", "allowance.json")}
	s.at("2026-11-30")
	return s
}

func (s *shelf) at(day string) {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		s.t.Fatal(err)
	}
	s.now.Store(&t)
}

// open returns Accounts with one account, and a channel of the reported changes.
func (s *shelf) open(n int64) (*Accounts, <-chan struct{}) {
	changed := make(chan struct{}, 64)
	b := Open(s.path, func() time.Time { return *s.now.Load() }, slog.New(slog.NewTextHandler(io.Discard, nil)), func() { changed <- struct{}{} })
	b.Set(map[string]Limit{"lte": {Month: n}})
	return b, changed
}

// inFile returns how much the account has spent according to the file.
func (s *shelf) inFile() int64 {
	s.t.Helper()
	b, err := os.ReadFile(s.path)
	var r record
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r.sum("lte", "")
}

func (s *shelf) wait(c <-chan struct{}) {
	s.t.Helper()
	select {
	case <-c:
	case <-time.After(limit):
		s.t.Fatal("nothing is told")
	}
}

// until triggers the keeper repeatedly until a condition is met.
func (s *shelf) until(b *Accounts, what string, so func() bool) {
	s.t.Helper()
	for end := time.Now().Add(limit); !so(); runtime.Gosched() {
		if time.Now().After(end) {
			s.t.Fatalf("%s: never; %+v", what, b.Balances())
		}
		b.hurry()
	}
}

// endless connects through Accounts to a server that sends without end.
func (s *shelf) endless(b *Accounts) net.Conn {
	s.t.Helper()
	return s.connect(b, func(c net.Conn) {
		for block := make([]byte, 64<<10); ; {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
}

// silent connects through Accounts to a server that sends nothing.
func (s *shelf) silent(b *Accounts) net.Conn {
	s.t.Helper()
	return s.connect(b, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// connect connects through Accounts to a server, like link.Dialer.
func (s *shelf) connect(b *Accounts, serve func(net.Conn)) net.Conn {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		serve(c)
	}()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if n := b.Buffer("lte"); n > 0 {
			e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, n) })
			err = errors.Join(e, err)
		}
		return err
	}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		l.Close()
		c.Close()
		<-done
	})
	_ = c.SetReadDeadline(time.Now().Add(limit))
	over := conn.Of(c)
	if err := b.Count(over, "lte"); err != nil {
		s.t.Fatal(err)
	}
	return over
}

// TestUncounted: a connection that cannot be counted is refused, unless its account has no limit.
func TestUncounted(t *testing.T) {
	b := &Accounts{accounts: map[string]*account{}, kick: make(chan struct{}, 1)}
	near, far := net.Pipe()
	if err := b.Count(conn.Of(near), "lte"); err != nil {
		t.Error(err)
	}
	b.Set(map[string]Limit{"lte": {Month: 1 << 30}})
	if err := b.Count(conn.Of(near), "lte"); err == nil {
		t.Error("it passes")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Error("it is not closed:", err)
	}
}

// charged returns how many bytes are charged for n body bytes.
func charged(n int64) int64 { return n * overhead / 100 }

// reserved is an upper bound of the reservation for a connection when a few megabytes are left.
const reserved = 160 << 10

// TestSpent reads until nothing is left.
func TestSpent(t *testing.T) {
	s := newShelf(t)
	const month = 5_000_000
	b, changed := s.open(month)
	defer b.Close()
	s.wait(changed) // the file has been read
	if n, bounded := b.Left("lte"); n != month || !bounded {
		t.Errorf("%d left of %d", n, int64(month))
	}
	if _, bounded := b.Left("wifi"); bounded {
		t.Error("an account without a limit has one")
	}
	n, err := io.Copy(io.Discard, s.endless(b))
	if !errors.Is(err, ErrSpent) || charged(n) > month || charged(n) < month-reserved {
		t.Errorf("%d bytes, counted as %d of %d: %v", n, charged(n), int64(month), err)
	}
	s.wait(changed)
	if n, _ := b.Left("lte"); n != 0 {
		t.Errorf("%d left", n)
	}
	if _, err := s.endless(b).Read(make([]byte, 1)); !errors.Is(err, ErrSpent) {
		t.Errorf("another connection: %v", err)
	}
	if _, err := s.endless(b).Write([]byte("x")); !errors.Is(err, ErrSpent) {
		t.Errorf("written: %v", err)
	}
	// The limit is raised.
	b.Set(map[string]Limit{"lte": {Month: 2 * month}})
	s.wait(changed)
	if m, err := io.Copy(io.Discard, s.endless(b)); !errors.Is(err, ErrSpent) || charged(n+m) > 2*month || charged(n+m) < 2*month-4*reserved {
		t.Errorf("with a higher limit: %d and %d bytes, %v", n, m, err)
	}
	b.Set(nil)
	if _, err := io.CopyN(io.Discard, s.endless(b), 3*month); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// TestLeases: whatever happens to the process, the file records at least the bytes used.
func TestLeases(t *testing.T) {
	s := newShelf(t)
	b, changed := s.open(1 << 30)
	s.wait(changed)
	const used = 10_000_000
	c := s.endless(b)
	for n := int64(0); n < used; {
		m, err := c.Read(make([]byte, 16<<10))
		if err != nil {
			t.Fatal(err)
		}
		if n += int64(m); s.inFile() < charged(n) {
			t.Fatalf("the file says %d after %d", s.inFile(), charged(n))
		}
	}
	if n := s.inFile(); n > charged(used)+2*lease {
		t.Errorf("the file says %d after %d", n, charged(used))
	}
	// Another process runs at the same time: each has its own leases.
	other, told := s.open(1 << 30)
	s.wait(told)
	second := s.endless(other)
	if _, err := io.CopyN(io.Discard, second, used); err != nil {
		t.Fatal(err)
	}
	if n := s.inFile(); n < charged(2*used) || n > charged(2*used)+4*lease {
		t.Errorf("the file says %d after %d of two", n, charged(2*used))
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	spent := s.of(b).used + s.of(other).used // including bytes in flight
	other.Close()
	b.Close()
	if n := s.inFile(); n != spent || n < charged(2*used) {
		t.Errorf("the file says %d in the end, used were %d", n, spent)
	}
}

// TestOpenAtTheEnd: bytes received on connections that are open when the Accounts are closed count.
func TestOpenAtTheEnd(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO")
	}
	s := newShelf(t)
	b, changed := s.open(1 << 30)
	s.wait(changed)
	c := s.endless(b)
	const used = 10_000 // less than half of the first window
	if _, err := io.CopyN(io.Discard, c, used); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(limit); info(t, c).Bytes_received < 2*used; {
		if time.Now().After(end) {
			t.Fatal("the kernel receives nothing")
		}
		runtime.Gosched()
	}
	b.Close()
	if n := s.inFile(); n < charged(2*used) {
		t.Errorf("the file says %d in the end, %d were received", n, charged(2*used))
	}
}

// TestMonth: a new month begins at 0, and an old one does not return.
func TestMonth(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO")
	}
	s := newShelf(t)
	b, changed := s.open(2 << 20)
	s.wait(changed)
	if _, err := io.Copy(io.Discard, s.endless(b)); !errors.Is(err, ErrSpent) {
		t.Fatal(err)
	}
	s.wait(changed)
	s.at("2026-12-01")
	b.hurry()
	s.wait(changed)
	if n, _ := b.Left("lte"); n != 2<<20 {
		t.Errorf("%d left in a new month", n)
	}
	s.at("2026-11-30") // the clock was wrong
	if n, err := io.Copy(io.Discard, s.endless(b)); !errors.Is(err, ErrSpent) || charged(n) > 2<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	b.Close()
	again, _ := s.open(2 << 20)
	defer again.Close()
	s.until(again, "the file is known", func() bool { return again.Balances()["lte"].Since != "" })
	if left := again.Balances()["lte"].MonthLeft; left > reserved { // bytes that connections may have received but not read
		t.Errorf("the clock goes back: %d left", left)
	}
}

// TestDay: a day has its own limit, and unused leases of a day are given back.
func TestDay(t *testing.T) {
	s := newShelf(t)
	b, changed := s.open(1 << 30)
	defer b.Close()
	s.wait(changed)
	const today = 5_000_000
	b.Set(map[string]Limit{"lte": {Month: 1 << 30, Day: today}})
	s.until(b, "the limit is near", func() bool { return b.Buffer("lte") > 0 })
	n, err := io.Copy(io.Discard, s.endless(b))
	if !errors.Is(err, ErrSpent) || charged(n) > today || charged(n) < today-reserved {
		t.Errorf("%d bytes, counted as %d of %d: %v", n, charged(n), int64(today), err)
	}
	s.wait(changed)
	s.at("2026-12-01")
	b.hurry()
	s.wait(changed)
	if n, _ := b.Left("lte"); n != today {
		t.Errorf("%d left on another day", n)
	}
	c := s.endless(b)
	if _, err := io.CopyN(io.Discard, c, 1_000_000); err != nil {
		t.Fatal(err)
	}
	c.Close()
	spent := b.Balances()["lte"]
	if spent.DayUsed < 1_000_000 || spent.DayUsed != today-spent.DayLeft || spent.MonthUsed < spent.DayUsed {
		t.Errorf("used: %+v", spent)
	}
	s.at("2026-12-02")
	s.until(b, "the day is over", func() bool { return b.Balances()["lte"].DayLeft == today })
	if next := b.Balances()["lte"]; next.MonthLeft != spent.MonthLeft || next.DayUsed != 0 || next.MonthUsed != spent.MonthUsed || next.Since != "2026-12-01" {
		t.Errorf("after midnight %+v, before %+v", next, spent)
	}
}

// TestMonthBegins: everything spent since the day on which the month begins counts, even if that day changes.
func TestMonthBegins(t *testing.T) {
	for _, row := range []struct {
		today string
		first int
		since string
	}{
		{"2026-11-23", 0, "2026-11-01"},
		{"2026-11-23", 1, "2026-11-01"},
		{"2026-11-23", 23, "2026-11-23"},
		{"2026-11-23", 24, "2026-10-24"},
		{"2026-03-01", 31, "2026-02-28"},
		{"2028-03-01", 30, "2028-02-29"},
		{"2026-01-05", 15, "2025-12-15"},
		{"2026-11-30", 31, "2026-11-30"},
		{"2026-11-29", 31, "2026-10-31"},
	} {
		if got := since(row.today, row.first); got != row.since {
			t.Errorf("on %s a month that begins on day %d began on %s, want %s", row.today, row.first, got, row.since)
		}
	}
	s := newShelf(t)
	text := `{"version":2,"day":"2026-11-30","spent":{"lte":{"2026-10-20":1,"2026-11-14":20,"2026-11-15":300,"2026-11-30":4000}}}`
	if err := errors.Join(os.Mkdir(filepath.Dir(s.path), 0o700), os.WriteFile(s.path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, changed := s.open(1 << 20)
	defer b.Close()
	s.wait(changed)
	for first, spent := range map[int]int64{1: 4320, 15: 4300, 14: 4320, 30: 4000, 20: 4000} {
		b.Set(map[string]Limit{"lte": {Month: 1 << 20, First: first}})
		s.until(b, fmt.Sprintf("a month from day %d with %d spent", first, spent), func() bool { return b.Balances()["lte"].MonthLeft == 1<<20-spent })
	}
}

// TestVersionBefore: bytes recorded by an older version of the program count.
func TestVersionBefore(t *testing.T) {
	s := newShelf(t)
	text := `{"version":1,"month":"2026-11","spent":{"lte":1000000}}`
	if err := errors.Join(os.Mkdir(filepath.Dir(s.path), 0o700), os.WriteFile(s.path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, changed := s.open(3_000_000)
	defer b.Close()
	s.wait(changed)
	if n, _ := b.Left("lte"); n != 2_000_000 {
		t.Errorf("%d left", n)
	}
}

// TestDamage: nothing is spent if bytes cannot be counted.
func TestDamage(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "{", "empty": "", "another version": `{"version":3,"day":"2026-11-30","spent":{}}`,
		"negative": `{"version":1,"month":"2026-11","spent":{"lte":-1}}`, "no count": `{"version":1,"month":"2026-11"}`,
		"negative day": `{"version":2,"day":"2026-11-30","spent":{"lte":{"2026-11-29":-1}}}`, "no days": `{"version":2,"day":"2026-11-30"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			if err := errors.Join(os.Mkdir(filepath.Dir(s.path), 0o700), os.WriteFile(s.path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			b, changed := s.open(1 << 30)
			defer b.Close()
			if _, err := s.endless(b).Read(make([]byte, 1)); !errors.Is(err, ErrSpent) {
				t.Errorf("read: %v", err)
			}
			if n, bounded := b.Left("lte"); n != 0 || !bounded {
				t.Errorf("%d left, %v", n, bounded)
			}
			if left, _ := os.ReadFile(s.path); !bytes.Equal(left, []byte(text)) {
				t.Errorf("the file is %q now", left)
			}
			if err := os.Remove(s.path); err != nil {
				t.Fatal(err)
			}
			b.hurry()
			s.wait(changed)
			if n, _ := b.Left("lte"); n != 1<<30 {
				t.Errorf("%d left without the damaged file", n)
			}
		})
	}
	t.Run("no folder", func(t *testing.T) {
		s := newShelf(t)
		if err := os.WriteFile(filepath.Dir(s.path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b, _ := s.open(1 << 30)
		defer b.Close()
		if _, err := s.endless(b).Read(make([]byte, 1)); !errors.Is(err, ErrSpent) {
			t.Errorf("read: %v", err)
		}
	})
}

// TestClosed: a reader that waits for a lease returns when its connection or the Accounts are closed.
func TestClosed(t *testing.T) {
	s := newShelf(t)
	b, changed := s.open(1 << 30)
	s.wait(changed)
	c := s.endless(b)
	c.Close()
	if _, err := io.Copy(io.Discard, c); err == nil || errors.Is(err, ErrSpent) {
		t.Errorf("closed: %v", err)
	}
	b.Close()
	if _, err := io.Copy(io.Discard, s.endless(b)); !errors.Is(err, ErrSpent) {
		t.Errorf("the book is closed: %v", err)
	}
}
