package conn_test

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/net/conn"
)

// narrow lets a few bytes pass at a time, and then none.
type narrow struct {
	most, left    int
	read, written int
}

var errShut = errors.New("shut")

func (g *narrow) Pass(_ bool, n int) (int, error) {
	if g.left == 0 {
		return 0, errShut
	}
	return min(n, g.most, g.left), nil
}

func (g *narrow) Moved(read, written int) {
	g.read, g.written = g.read+read, g.written+written
	g.left -= read + written
}

// tcp returns both ends of a TCP connection.
func tcp(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if near, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TestGates: all bytes pass all gates, whatever copies them, and only a connection without gates can be spliced.
func TestGates(t *testing.T) {
	near, far := tcp(t)
	c := conn.Of(near)
	if c.TCP() == nil || conn.Of(c) != c || !c.HasSocket() {
		t.Error("without gates it is not a TCP connection")
	}
	first, second := &narrow{most: 7, left: 1000}, &narrow{most: 5, left: 100}
	counted := 0
	c.Through(first)
	c.Through(second)
	c.Through(conn.Counter(func(read, written int) { counted += read + written }))
	if c.TCP() != nil {
		t.Error("its bytes can avoid the gates")
	}
	if _, ok := any(c).(io.ReaderFrom); ok {
		t.Error("writes can avoid the gates")
	}
	if _, ok := any(c).(io.WriterTo); ok {
		t.Error("reads can avoid the gates")
	}
	go func() {
		_, _ = far.Write(make([]byte, 60))
		_, _ = io.Copy(io.Discard, far)
	}()
	if n, err := io.CopyN(io.Discard, c, 60); n != 60 || err != nil {
		t.Error(n, err)
	}
	if n, err := c.Write(make([]byte, 60)); n != 40 || !errors.Is(err, errShut) {
		t.Errorf("wrote %d bytes, %v; 40 were left", n, err)
	}
	if *first != (narrow{7, 900, 60, 40}) || *second != (narrow{5, 0, 60, 40}) || counted != 100 {
		t.Errorf("%+v, %+v, %d", first, second, counted)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errShut) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestHooks: hooks run once, at their time.
func TestHooks(t *testing.T) {
	near, far := tcp(t)
	c := conn.Of(near)
	var calls []string
	say := func(what string) func() {
		return func() {
			_, err := c.SyscallConn()
			alive := err == nil && c.SetLinger(1) == nil
			calls = append(calls, map[bool]string{true: what + " open", false: what + " closed"}[alive])
		}
	}
	c.BeforeClose(say("first"))
	c.AfterClose(say("second"))
	c.BeforeClose(say("third"))
	c.Close()
	c.Close()
	c.BeforeClose(say("late"))
	c.AfterClose(say("later"))
	if want := []string{"first open", "third open", "second closed", "late closed", "later closed"}; !slices.Equal(calls, want) {
		t.Errorf("%q, want %q", calls, want)
	}
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("it is open")
	}
}

// TestNoSocket: a connection that the kernel does not know works, and says so.
func TestNoSocket(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := conn.Of(near)
	defer c.Close()
	if _, err := c.SyscallConn(); c.HasSocket() || c.TCP() != nil || !errors.Is(err, errors.ErrUnsupported) ||
		c.CloseWrite() == nil || c.SetLinger(0) == nil || c.SetKeepAliveConfig(net.KeepAliveConfig{}) == nil {
		t.Error("it has what only sockets have")
	}
}
