// Package appbridgetest is an app that owns networks, for tests: the other side of package appbridge.
package appbridgetest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Hello is the default greeting of an App.
const Hello = `{"type":"hello","version":1,"a field of later":true}`

// App is an app. Its fields are set before Listen; Path and Heard are valid after it.
type App struct {
	Greet string                                 // instead of Hello
	Bind  func(handle uint64, fd int) unix.Errno // called with a socket; nil = no bind, and no error
	// returns the description of a download that the app wants, and its file, -1 = none
	Order func(id uint64) (line string, fd int)
	// another program as the app, except for Bind; nil = Heard, Say and Greet are used
	Relay io.ReadWriter

	Path  string
	Heard chan map[string]any // messages of the program after its hello; closed at its end
	Steps chan map[string]any // messages of the program about downloads

	mu     sync.Mutex
	conns  []net.Conn
	events net.Conn
	hung   bool // HangUp was called
	bound  []uint64
	orders map[uint64]*net.UnixConn
}

// Listen starts the app at a path. It ends with the test.
func (a *App) Listen(t testing.TB, path string) {
	t.Helper()
	a.Path, a.Heard, a.Steps = path, make(chan map[string]any, 256), make(chan map[string]any, 256)
	a.orders = map[uint64]*net.UnixConn{}
	if a.Greet == "" {
		a.Greet = Hello
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var parts sync.WaitGroup
	parts.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.conns = append(a.conns, c)
			if a.hung {
				c.Close()
			}
			a.mu.Unlock()
			parts.Go(func() { a.serve(t, c.(*net.UnixConn)) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		a.HangUp()
		parts.Wait()
	})
}

// HangUp ends all connections.
func (a *App) HangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hung = true
	for _, c := range a.conns {
		c.Close()
	}
}

// serve greets on one connection and serves it.
func (a *App) serve(t testing.TB, c *net.UnixConn) {
	line, err := hello(c)
	a.mu.Lock()
	hung := a.hung
	a.mu.Unlock()
	if err != nil && hung {
		return
	}
	var it struct {
		Type, Channel string
		Version       int
		ID            uint64
	}
	if err != nil || json.Unmarshal(line, &it) != nil || it.Type != "hello" || it.Version != 1 {
		t.Errorf("the program greets with %q, %v", line, err)
		return
	}
	switch it.Channel {
	case "bind":
		a.binds(t, c)
		return
	case "fetch":
		a.order(c, it.ID)
		return
	}
	a.mu.Lock()
	a.events = c
	a.mu.Unlock()
	if a.Relay != nil {
		defer close(a.Heard)
		go func() { _, _ = io.Copy(c, a.Relay) }() // ends with the other program
		_, _ = io.Copy(a.Relay, c)
		return
	}
	_, _ = io.WriteString(c, a.Greet+"\n")
	defer close(a.Heard)
	for d := json.NewDecoder(c); ; {
		var m map[string]any
		if d.Decode(&m) != nil {
			return
		}
		a.Heard <- m
	}
}

// hello reads the first line and no byte more: a descriptor may come with the next bytes.
func hello(c net.Conn) (line []byte, err error) {
	for b := make([]byte, 1); err == nil && b[0] != '\n'; {
		if _, err = io.ReadFull(c, b); err == nil {
			line = append(line, b[0])
		}
	}
	return line, err
}

// Say sends a line to the program, which must have greeted.
func (a *App) Say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.events, format+"\n", args...)
}

// order hands a file over and receives its status messages.
func (a *App) order(c *net.UnixConn, id uint64) {
	line, fd := a.Order(id)
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	a.mu.Lock()
	a.orders[id] = c
	a.mu.Unlock()
	text := []byte(line + "\n")
	n, _, err := c.WriteMsgUnix(text, rights, nil)
	if err == nil {
		_, _ = c.Write(text[n:]) // a wrong order is not read to its end
	}
	for d := json.NewDecoder(c); ; {
		var m map[string]any
		if d.Decode(&m) != nil {
			return
		}
		a.Steps <- m
	}
}

// StopOrder stops a download.
func (a *App) StopOrder(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.orders[id].CloseWrite()
}

// Bound returns the handles that sockets were to be bound to, in order.
func (a *App) Bound() []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]uint64(nil), a.bound...)
}

func (a *App) binds(t testing.TB, c *net.UnixConn) {
	for {
		b, oob := make([]byte, 64), make([]byte, 256)
		n, m, _, _, err := c.ReadMsgUnix(b, oob)
		if err != nil || n == 0 {
			return
		}
		handle, fd, err := received(b[:n], oob[:m])
		if err != nil {
			t.Error(err)
			return
		}
		a.mu.Lock()
		a.bound = append(a.bound, handle)
		a.mu.Unlock()
		var errno unix.Errno
		if a.Bind != nil {
			errno = a.Bind(handle, fd)
		}
		unix.Close(fd)
		if _, err := c.Write(binary.BigEndian.AppendUint32(nil, uint32(errno))); err != nil {
			return
		}
	}
}

// received parses a message: eight bytes and one descriptor.
func received(b, oob []byte) (handle uint64, fd int, err error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 || len(b) != 8 {
		return 0, 0, fmt.Errorf("%d bytes, %d control messages: %w", len(b), len(msgs), err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return 0, 0, fmt.Errorf("%d descriptors: %w", len(fds), err)
	}
	return binary.BigEndian.Uint64(b), fds[0], nil
}
