package proxy

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/link"
)

// end is the tunnel's end of an in-memory connection. Its peer sends nothing and can announce that, as with TCP, if stop is set.
type end struct {
	net.Conn
	stop chan struct{}
}

func (e *end) Read(p []byte) (int, error) {
	if e.stop == nil {
		return e.Conn.Read(p)
	}
	<-e.stop
	return 0, io.EOF
}

func (e *end) CloseWrite() error { return nil }

func TestTunnelTimes(t *testing.T) {
	// open runs a tunnel and returns the far ends; the client sends nothing until stop is closed, if that is not nil.
	open := func(stop chan struct{}) (client, origin net.Conn, reason <-chan string) {
		c1, c2 := net.Pipe()
		o1, o2 := net.Pipe()
		ts := newTunnels(nil)
		tun, _ := ts.add(&end{Conn: o1}, "lo", nobody)
		buffers := &sync.Pool{New: func() any { b := make([]byte, 1024); return &b }}
		ch := make(chan string, 1)
		go func() {
			ch <- tun.run(&end{c1, stop}, nil, nil, buffers)
			ts.remove(tun)
		}()
		return c2, o2, ch
	}
	t.Run("R144 idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, _, reason := open(nil)
			if r := <-reason; r != "idle" {
				t.Errorf("ended: %s", r)
			}
			if took := time.Since(began); took < tunnelIdle || took > tunnelIdle*5/4 {
				t.Errorf("ended after %v", took)
			}
		})
	})
	t.Run("R144 one-way trickle keeps it alive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, origin, reason := open(nil)
			go func() { _, _ = io.Copy(io.Discard, client) }()
			for range 10 {
				time.Sleep(tunnelIdle - time.Minute) // virtual
				if _, err := origin.Write([]byte{1}); err != nil {
					t.Fatal(err)
				}
			}
			client.Close()
			origin.Close()
			<-reason
		})
	})
	t.Run("R143 half-closed is bounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			_, _, reason := open(stop)
			time.Sleep(time.Minute)
			close(stop)
			began := time.Now()
			if r := <-reason; r != "idle" {
				t.Errorf("ended: %s", r)
			}
			if took := time.Since(began); took < halfClosedIdle || took > halfClosedIdle*5/4 {
				t.Errorf("ended after %v", took)
			}
		})
	})
	t.Run("R143 half-closed, the reply takes long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			client, origin, reason := open(stop)
			close(stop)
			go func() {
				for range 10 {
					time.Sleep(halfClosedIdle - time.Second)
					_, _ = origin.Write([]byte{1})
				}
				origin.Close()
			}()
			if n, err := io.Copy(io.Discard, client); n != 10 || err != nil {
				t.Errorf("client read %d bytes, %v", n, err)
			}
			if r := <-reason; r != "closed" {
				t.Errorf("ended: %s", r)
			}
		})
	})
}

// TestTunnelLook looks at a busy TCP tunnel all the time: that must lose no byte, and every byte must be counted. A connection that
// has one of a host's slots is spliced like any other: the buffers of the test hold nothing.
func TestTunnelLook(t *testing.T) {
	t.Run("plain", func(t *testing.T) { tunnelLook(t, func(c *net.TCPConn) net.Conn { return c }) })
	t.Run("with a slot", func(t *testing.T) {
		slots := link.NewSlots(1)
		slot, err := slots.Take("lo", "o.test:443")
		if err != nil {
			t.Fatal(err)
		}
		tunnelLook(t, func(c *net.TCPConn) net.Conn { held := conn.Of(c); slot.Hold(held); return held })
		if _, err := slots.Take("lo", "o.test:443"); err != nil {
			t.Errorf("the tunnel has ended: %v", err)
		}
	})
}

func tunnelLook(t *testing.T, hold func(*net.TCPConn) net.Conn) {
	t.Helper()
	pair := func() (near, far *net.TCPConn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(); b.Close() })
		return a.(*net.TCPConn), b.(*net.TCPConn)
	}
	client, clientFar := pair()
	dialed, originFar := pair()
	origin := hold(dialed)
	ts := newTunnels(nil)
	tun, _ := ts.add(origin, "lo", nobody)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tun.run(client, []byte("early"), nil, &sync.Pool{New: func() any { return new([]byte) }})
		ts.remove(tun)
	}()
	sum := func(r io.Reader) (h [sha256.Size]byte, n int64) {
		d := sha256.New()
		n, _ = io.Copy(d, r)
		return [sha256.Size]byte(d.Sum(nil)), n
	}
	data := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	go func() {
		_, _ = clientFar.Write(data)
		_ = clientFar.CloseWrite()
	}()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				look(client)
				look(origin)
			}
		}
	}()
	got, n := sum(originFar)
	close(stop)
	if want, _ := sum(io.MultiReader(strings.NewReader("early"), bytes.NewReader(data))); got != want {
		t.Errorf("%d bytes came, not those that were sent", n)
	}
	originFar.Close()
	<-done
	if c := tun.bytes.Load(); c != n {
		t.Errorf("counted %d bytes of %d", c, n)
	}
}

// nobody is a client about which nothing is known.
var nobody = &client{}
