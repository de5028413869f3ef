package relay

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCost: 100 short flows make no connection over a link, and the overhead of frames, records and acknowledgments is below 1 %.
func TestCost(t *testing.T) {
	const flows, asked, answered = 100, 500, 100_000
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	addr := origin(t, func(c *net.TCPConn) {
		if _, err := io.CopyN(io.Discard, c, asked); err == nil {
			_, _ = c.Write(make([]byte, answered))
		}
	})
	dials := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, all := range r.conns {
			n += len(all)
		}
		return n
	}
	before, carried := dials(), r.carried.Load()
	var all sync.WaitGroup
	for range flows {
		all.Go(func() {
			c, err := r.out.Dial(t.Context(), addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, err = c.Write(make([]byte, asked))
			if err == nil {
				_, err = io.CopyN(io.Discard, c, answered)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := dials() - before; n != 0 {
		t.Errorf("%d connections over links for %d flows", n, flows)
	}
	const content = flows * (asked + answered)
	added := float64(r.carried.Load()-carried-content) / content
	t.Logf("%.2f %% were added", 100*added)
	most := 0.02 // on a busy machine more frames are small, and acknowledged one by one
	switch {
	case os.Getenv("TRIBUTARY_EMULATOR") != "":
		most = 0.03 // qemu-user has no TCP_INFO
	case os.Getenv("TRIBUTARY_MATRIX") != "":
		most = 0.01
	}
	if added < 0 || added > most {
		t.Errorf("%.2f %% were added to %d bytes", 100*added, content)
	}
}

// measured counts the bytes of a connection, both ways.
type measured struct {
	*net.TCPConn
	n *atomic.Int64
}

func (c measured) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c measured) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.n.Add(int64(n))
	return n, err
}
