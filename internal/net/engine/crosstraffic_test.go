package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// countedConn is a connection with counters.
type countedConn struct {
	fakeConn
	mu      *sync.Mutex
	n       link.Counters
	unknown bool
}

func (c *countedConn) Received() (link.Counters, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, !c.unknown
}

// TestCrossTraffic: background transfers learn of other traffic over a link, once for each change. Bytes that arrive for another
// background transfer, or while a connection joins, are not other traffic.
func TestCrossTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the test holds it, except while it waits
		mu.Lock()
		var all link.Counters
		counted := true
		c := &crossTraffic{
			conns: map[*connLoop]bool{}, wake: make(chan struct{}, 1),
			received: func(int8) (link.Counters, bool) {
				mu.Lock()
				defer mu.Unlock()
				return all, counted
			},
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.serve(ctx); close(done) }()
		synctest.Wait() // or the first connection might be seen twice at once
		looks := func(n int) {
			mu.Unlock()
			time.Sleep(time.Duration(n)*crossEvery + time.Millisecond)
			synctest.Wait()
			mu.Lock()
		}
		packets := func(n int64) { all.Packets, all.Bytes = all.Packets+n, all.Bytes+n*1500 }
		own := func(c *countedConn, n int64) { packets(n); c.n.Packets, c.n.Bytes = c.n.Packets+n, c.n.Bytes+n*1448 }
		r := &run{mailbox: mailbox{posted: make(chan struct{}, 1)}}
		hears := func(what string, want ...int64) {
			t.Helper()
			mail := r.mailbox.take()
			ok := len(mail) == len(want)
			for i := range mail {
				ok = ok && mail[i].Kind == transfer.CrossTraffic && mail[i].Link == 3 && mail[i].N == want[i]
			}
			if !ok {
				t.Errorf("%s: %+v, want %v", what, mail, want)
			}
		}
		mine, other := &countedConn{mu: &mu}, &countedConn{mu: &mu}
		a, b := &connLoop{r: r, link: 3, conn: mine}, &connLoop{r: &run{mailbox: mailbox{posted: make(chan struct{}, 1)}}, link: 3, conn: other}
		packets(1000)
		c.join(a)
		looks(2)
		hears("nothing comes")
		own(mine, 20)
		looks(2)
		hears("its own")
		c.join(b)
		own(other, 50)
		looks(2)
		own(other, 50)
		looks(3) // bytes that arrive then are in the second half of a bin, which ends before the silence is long
		hears("another background transfer's")
		packets(10)
		looks(2)
		hears("others'", 10*1500*50)
		looks(40)
		hears("silence", 0, -1)
		other.unknown = true
		packets(10)
		looks(2)
		hears("a connection without counters")
		c.leave(b)
		looks(2)
		hears("one less")
		counted = false
		looks(2)
		hears("a link without counters")
		c.leave(a)
		looks(2)
		mu.Unlock()
		end()
		<-done
	})
}
