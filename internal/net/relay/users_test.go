package relay

import (
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// TestWatchingUsers: the processor time that users cost the server if each watches or downloads at 20 Mbit/s, all at the same
// time and each over two lanes. Bytes that trickle cost more than a bulk transfer. The limit is twice the measured value: a
// busy machine has cold caches.
func TestWatchingUsers(t *testing.T) {
	l := newStand(t)
	const (
		users = 20
		rate  = 2.5e6 // bytes per second and user
		piece = 25_000
		each  = 10 * time.Second
	)
	pieces := int(rate * each.Seconds() / piece)
	var conns []io.Reader
	path := ""
	for i := range users {
		if i%maxSessions == 0 {
			path = l.pair()
		}
		conns = append(conns, l.open(l.client(path), l.source))
	}
	server, client, began := l.processor(l.server), l.processor(os.Getpid()), time.Now()
	errs := make([]error, users)
	var watching sync.WaitGroup
	for i, conn := range conns {
		watching.Go(func() {
			buf := make([]byte, piece)
			for n := range pieces {
				if _, err := io.ReadFull(conn, buf); err != nil {
					errs[i] = fmt.Errorf("after %d pieces: %w", n, err)
					return
				}
				time.Sleep(time.Until(began.Add(time.Duration(float64(n+1) * piece / rate * float64(time.Second))))) // a user that is behind does not wait
			}
		})
	}
	watching.Wait()
	took := time.Since(began)
	for i, err := range errs {
		if err != nil {
			t.Errorf("user %d: %v", i, err)
		}
	}
	bytes := float64(users*pieces) * piece
	perGB := func(d time.Duration) float64 { return d.Seconds() / bytes * 1e9 }
	server, client = l.processor(l.server)-server, l.processor(os.Getpid())-client
	t.Logf("%d users, together %.0f Mbit/s: server %.2f, clients %.2f s/GB; at 20 Mbit/s each, a core is full with %.0f users", users, bytes*8/1e6/took.Seconds(),
		perGB(server), perGB(client), 1/(perGB(server)*rate/1e9))
	if perGB(server) > 20 {
		t.Error("more than 20 s/GB")
	}
}
