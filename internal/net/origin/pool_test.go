package origin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// held returns a stream for k and the origin's end of it.
func held(k key) (*stream, net.Conn) {
	near, far := net.Pipe()
	s := &stream{key: k, socket: near, conn: near, wire: &wire{conn: near}}
	s.br = bufio.NewReader(s.wire)
	return s, far
}

func (p *Pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func closed(far net.Conn) bool {
	far.SetReadDeadline(time.Now())
	_, err := far.Read(make([]byte, 1))
	return err == io.EOF
}

func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(nil)
		s, far := held(key{link: "w0"})
		p.put(s)
		time.Sleep(IdleTimeout - 1)
		synctest.Wait()
		if p.count() != 1 || closed(far) {
			t.Error("closed too early")
		}
		far.SetReadDeadline(time.Time{})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if p.count() != 0 || !closed(far) {
			t.Error("not closed")
		}
	})
}

func TestWarmTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(nil)
		near, far := net.Pipe()
		p.Warm(link.Link{Name: "w0"}, "o.test:80", near, link.Info{})
		time.Sleep(warmTimeout - 1)
		synctest.Wait()
		if p.count() != 1 || closed(far) {
			t.Error("closed too early")
		}
		far.SetReadDeadline(time.Time{})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if p.count() != 0 || !closed(far) {
			t.Error("not closed")
		}
	})
}

func TestIdleBounds(t *testing.T) {
	p := New(nil)
	defer p.Close()
	var ends []net.Conn
	for range MaxIdlePerKey + 1 {
		s, far := held(key{addr: "a"})
		p.put(s)
		ends = append(ends, far)
	}
	if p.count() != MaxIdlePerKey || !closed(ends[0]) || closed(ends[1]) {
		t.Errorf("%d of one key; the oldest one has to go", p.count())
	}
	for i := range MaxIdle {
		s, _ := held(key{addr: fmt.Sprint(i)})
		p.put(s)
	}
	if p.count() != MaxIdle || !closed(ends[4]) {
		t.Errorf("%d in all", p.count())
	}
}

func TestDropLink(t *testing.T) {
	p := New(nil)
	a, farA := held(key{link: "w0", addr: "a"})
	b, farB := held(key{link: "w1", addr: "a"})
	p.put(a)
	p.put(b)
	p.DropLink("w0")
	if !closed(farA) || closed(farB) {
		t.Error("DropLink closes the connections of its link and no other")
	}
	p.Close()
	if !closed(farB) {
		t.Error("Close leaves a connection open")
	}
	c, farC := held(key{link: "w1", addr: "a"})
	p.put(c)
	if !closed(farC) {
		t.Error("a connection released after Close stays open")
	}
}

func TestTakeChecksTheSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct {
		name   string
		meddle func(net.Conn)
		good   bool
	}{
		{"quiet", func(net.Conn) {}, true},
		{"closed", func(far net.Conn) { far.Close() }, false},
		{"half closed", func(far net.Conn) { far.(*net.TCPConn).CloseWrite() }, false},
		{"R48 bytes nobody asked for", func(far net.Conn) { far.Write([]byte("HTTP/1.1 408 Request Timeout\r\n\r\n")) }, false},
		{"reset", func(far net.Conn) { far.(*net.TCPConn).SetLinger(0); far.Close() }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			near, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			p := New(nil)
			defer p.Close()
			k := key{link: "w0"}
			p.put(&stream{key: k, socket: near})
			tt.meddle(far) // over loopback it has arrived when the call returns
			if got := p.take(link.Link{Name: k.link}, k); (got != nil) != tt.good {
				t.Errorf("take = %v", got)
			}
			if p.count() != 0 {
				t.Error("it is still in the pool")
			}
		})
	}
}
