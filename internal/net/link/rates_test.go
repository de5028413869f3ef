package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// endless returns bytes as fast as they are requested.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func newPace(l *rate.Limiter) *pace { return &pace{limiter: l, closed: make(chan struct{})} }

func TestRateOfConnectionsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rates
		r.Set(map[string]int64{"lte": 1e6})
		l := r.limiters["lte"]
		start := time.Now()
		received := func(until time.Duration) (total int64) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					p, buf := newPace(l), make([]byte, 1<<20)
					for time.Since(start) < until {
						n, err := p.read(endless{}, buf)
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
	p, buf := newPace(r.limiters["lte"]), make([]byte, 1<<20)
	for range 1000 { // at 1 MB/s it would take minutes
		if _, err := p.read(endless{}, buf); err != nil {
			t.Fatal(err)
		}
	}
	tcp := net.Conn(new(net.TCPConn))
	if c, err := r.Limit(tcp, "lte"); c != tcp || err != nil {
		t.Error("a link without a limit has slower connections")
	}
	near, far := net.Pipe()
	if c, err := r.Limit(near, "lte"); c != near || err != nil {
		t.Error(c, err)
	}
	r.Set(map[string]int64{"lte": 1e6})
	if c, err := r.Limit(near, "lte"); c != nil || err == nil {
		t.Error("a connection that cannot be limited passes")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Error("it is not closed:", err)
	}
}

func TestClosedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rates
		r.Set(map[string]int64{"lte": 1})
		p, buf := newPace(r.limiters["lte"]), make([]byte, 1<<20)
		for range 2 { // the second one is paid for in the third
			if _, err := p.read(endless{}, buf); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() {
			_, err := p.read(endless{}, buf)
			done <- err
		}()
		synctest.Wait()
		p.close()
		p.close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestLimitedConn: io.Copy must not bypass the limit, and no methods of a TCP connection may be missing.
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
	c, err := r.Limit(raw, "lte")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(interface{ CloseWrite() error }); !ok {
		t.Error("it cannot be closed by half")
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
