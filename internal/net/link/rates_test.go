package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/net/conn"
)

// endless returns bytes as fast as they are requested.
type endless struct{ net.Conn }

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func (endless) Close() error { return nil }

// limited returns an endless connection over the link "lte".
func limited(r *Rates) *conn.Conn {
	c := conn.Of(endless{})
	r.Limit(c, "lte")
	return c
}

func TestRateOfConnectionsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rates
		r.Set(map[string]int64{"lte": 1e6})
		start := time.Now()
		received := func(until time.Duration) (total int64) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					c, buf := limited(&r), make([]byte, 1<<20)
					for time.Since(start) < until {
						n, err := c.Read(buf)
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						total += int64(n)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			return total
		}
		if n := received(10 * time.Second); n < 9.9e6 || n > 10.2e6 {
			t.Errorf("%d bytes in 10 s at 1 MB/s", n)
		}
		r.Set(map[string]int64{"lte": 4e6})
		if n := received(20 * time.Second); n < 39.5e6 || n > 41e6 {
			t.Errorf("%d bytes in the next 10 s at 4 MB/s", n)
		}
	})
}

func TestNoRate(t *testing.T) {
	var r Rates
	r.Set(map[string]int64{"lte": 1e6})
	r.Set(nil)
	c, buf := limited(&r), make([]byte, 1<<20)
	for range 1000 { // at 1 MB/s it would take minutes
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	tcp := conn.Of(new(net.TCPConn))
	if r.Limit(tcp, "lte"); tcp.TCP() == nil {
		t.Error("a link without a limit has slower connections")
	}
}

func TestClosedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rates
		r.Set(map[string]int64{"lte": 1})
		c, buf := limited(&r), make([]byte, 1<<20)
		for range 2 { // the second one is paid for in the third
			if _, err := c.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() {
			_, err := c.Read(buf)
			done <- err
		}()
		synctest.Wait()
		c.Close()
		c.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestLimitedConn: nothing bypasses the limit.
func TestLimitedConn(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const size = 200_000
	go func() {
		c, err := ln.Accept()
		if err == nil {
			_, _ = c.Write(make([]byte, size))
			c.Close()
		}
	}()
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var r Rates
	r.Set(map[string]int64{"lte": 1e6})
	c := conn.Of(raw)
	r.Limit(c, "lte")
	defer c.Close()
	if c.TCP() != nil {
		t.Error("it can be spliced")
	}
	start := time.Now()
	n, err := io.Copy(io.Discard, c)
	if err != nil || n != size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("%d bytes in %v at 1 MB/s", n, took)
	}
}
