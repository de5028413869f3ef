package relay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// stand is the program as a server, a source and a sink of bytes in a process of their own, and this process as the clients.
type stand struct {
	*testing.T
	state        string
	address      string
	server       int // process
	source, sink string
}

// sourceVariable makes the test binary act as the source and the sink.
const sourceVariable = "TRIBUTARY_TEST_SOURCE"

func newStand(t *testing.T, args ...string) *stand {
	if os.Getenv("TRIBUTARY_MATRIX") == "" {
		t.Skip("it takes a minute: make matrix")
	}
	dir := t.TempDir()
	l := &stand{T: t, state: filepath.Join(dir, "tributary", "relay-server.json")}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/tributary-http/tributary/cmd/tributary").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = free.Addr().String()
	free.Close()
	serve := exec.Command(program, append([]string{"relay", "serve", "--listen", l.address, "--allow-destinations", "127.0.0.0/8", "--drain", "0s"}, args...)...)
	serve.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
	l.run(serve, "relay is listening")
	l.server = serve.Process.Pid
	other := exec.Command(os.Args[0], "-test.run=^TestSource$")
	other.Env = append(os.Environ(), sourceVariable+"=1")
	said := strings.Fields(l.run(other, "source"))
	l.source, l.sink = said[1], said[2]
	return l
}

// run starts a program that ends with the test, and returns the first line of its output that contains some words.
func (l *stand) run(c *exec.Cmd, words string) string {
	l.Helper()
	out, err := c.StdoutPipe()
	if err != nil {
		l.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		l.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var rest sync.WaitGroup
	l.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		rest.Wait()
		_ = c.Wait()
	})
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			l.Fatal(err)
		}
		if strings.Contains(line, words) {
			rest.Go(func() { _, _ = io.Copy(io.Discard, lines) })
			return line
		}
	}
}

// TestSource is the other process: a port that sends without end and one that takes everything.
func TestSource(t *testing.T) {
	if os.Getenv(sourceVariable) == "" {
		t.Skip("it is run by others")
	}
	zeros := make([]byte, 256<<10)
	source := origin(t, func(c *net.TCPConn) {
		for {
			if _, err := c.Write(zeros); err != nil {
				return
			}
		}
	})
	sink := origin(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	fmt.Println("source", source, sink)
	select {} // until SIGTERM
}

// pair returns the state file of another client.
func (l *stand) pair() string {
	l.Helper()
	i, err := Invite(l.state, l.address, Limits{})
	if err != nil {
		l.Fatal(err)
	}
	path := filepath.Join(l.TempDir(), "client.json")
	if err := Enrol(l.Context(), path, i); err != nil {
		l.Fatal(err)
	}
	return path
}

// client starts a paired client with a lane over each of two links.
func (l *stand) client(path string) *Client {
	l.Helper()
	c, err := NewClient(path, l.address, 64<<20, slog.New(slog.DiscardHandler))
	if err != nil {
		l.Fatal(err)
	}
	dial := link.DialFunc(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	})
	c.SetLinks(dial.Over(link.Link{Name: "wifi"}, link.Link{Name: "lte"}))
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { c.Run(ctx) })
	l.Cleanup(func() { cancel(); runs.Wait() })
	deadline := time.After(time.Minute)
	for tick := time.Tick(time.Millisecond); ; {
		up := 0
		for _, at := range c.Status().Lanes {
			if at.Up {
				up++
			}
		}
		if up == 2 {
			return c
		}
		select {
		case <-tick:
		case <-deadline:
			l.Fatalf("there are no lanes: %+v", c.Status())
		}
	}
}

// resident returns the memory of a process, in bytes.
func (l *stand) resident(pid int) int64 {
	l.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		l.Fatal(err)
	}
	_, after, _ := bytes.Cut(b, []byte("VmRSS:"))
	n, err := strconv.ParseInt(string(bytes.Fields(after)[0]), 10, 64)
	if err != nil {
		l.Fatal(err)
	}
	return n << 10
}

// processor returns the processor time that a process has used, which Linux counts in hundredths of a second.
func (l *stand) processor(pid int) time.Duration {
	l.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		l.Fatal(err)
	}
	_, after, _ := bytes.Cut(b, []byte(") "))
	f := bytes.Fields(after)
	var ticks int64
	for _, i := range []int{11, 12} { // utime, stime
		n, err := strconv.ParseInt(string(f[i]), 10, 64)
		if err != nil {
			l.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// TestIdleUsers: a server holds 1,000 connected users in 100 MB.
func TestIdleUsers(t *testing.T) {
	l := newStand(t)
	before, spent := l.resident(l.server), l.processor(l.server)
	const users = 1000
	path := ""
	for i := range users {
		if i%maxSessions == 0 { // a key costs little compared with a session
			path = l.pair()
		}
		l.client(path)
	}
	now := l.resident(l.server)
	t.Logf("%d idle users: %.1f MB, of which %.1f without any; %.1f ms each to connect", users, float64(now)/1e6, float64(before)/1e6,
		float64((l.processor(l.server)-spent).Microseconds())/1e3/users)
	if now > 100e6 {
		t.Errorf("%d bytes are held", now)
	}
}

// open opens a tunnel.
func (l *stand) open(c *Client, addr string) net.Conn {
	l.Helper()
	conn, err := c.Dial(l.Context(), addr)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { conn.Close() })
	return conn
}

// TestManyFlows: 1,000 tunnels with slow readers take the budget of a session and 50 MB at each end, and all continue.
func TestManyFlows(t *testing.T) {
	l := newStand(t)
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // as the program does
	c := l.client(l.pair())
	const flows, limit = 1000, 64<<20 + 50_000_000
	var all []net.Conn
	for range flows {
		all = append(all, l.open(c, l.source))
	}
	buf := make([]byte, 32<<10)
	most := map[int]int64{}
	for range 3 {
		for _, conn := range all {
			if _, err := io.ReadFull(conn, buf); err != nil {
				t.Fatal(err)
			}
		}
		for _, pid := range []int{l.server, os.Getpid()} {
			most[pid] = max(most[pid], l.resident(pid))
		}
	}
	t.Logf("%d flows: server %.1f MB, client %.1f MB", flows, float64(most[l.server])/1e6, float64(most[os.Getpid()])/1e6)
	for pid, n := range most {
		if n > limit {
			t.Errorf("process %d of %d and %d holds %d bytes", pid, l.server, os.Getpid(), n)
		}
	}
}

// TestProcessorTime: the processor time of a gigabyte over loopback, each way, TLS included, with the client copying from and
// to a socket. The limits are twice the measured values: a busy machine has cold caches.
func TestProcessorTime(t *testing.T) {
	l := newStand(t)
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	c := l.client(l.pair())
	const size = 1 << 29
	local := func(addr string) net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for _, way := range []struct {
		name     string
		from, to net.Conn
	}{
		{"download", l.open(c, l.source), local(l.sink)},
		{"upload", local(l.source), l.open(c, l.sink)},
	} {
		began, server, client := time.Now(), l.processor(l.server), l.processor(os.Getpid())
		if _, err := io.CopyN(struct{ io.Writer }{way.to}, struct{ io.Reader }{way.from}, size); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		each := func(d time.Duration) float64 { return d.Seconds() * 1e9 / size }
		server, client = l.processor(l.server)-server, l.processor(os.Getpid())-client
		t.Logf("%s: server %.2f, client %.2f s/GB; %.0f Mbit/s", way.name, each(server), each(client), size*8/1e6/took.Seconds())
		if each(server) > 4 || each(client) > 3 {
			t.Errorf("%s: more than 4 + 3 s/GB", way.name)
		}
	}
}
