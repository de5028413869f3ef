package engine

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// stalls is a disk that writes nothing for a while, once. Meanwhile as many bytes are held for it as may be.
type stalls struct {
	e      *Engine
	behind time.Duration
	done   bool
	held   int64
}

func (d *stalls) WriteAt(p []byte, off int64) (int, error) {
	if d.done || off < mib {
		return len(p), nil
	}
	d.done = true
	before := carried(d.e, "a") + carried(d.e, "b")
	for last, since := before, time.Now(); time.Since(since) < 3*chunkTime; time.Sleep(time.Millisecond) {
		if now := carried(d.e, "a") + carried(d.e, "b"); now != last {
			last, since, d.held = now, time.Now(), now-before
		}
	}
	time.Sleep(d.behind)
	return len(p), nil
}

// suspicions counts how often a link was no longer up for an origin.
type suspicions struct {
	mu sync.Mutex
	n  int
}

func (s *suspicions) Observe(e Event) {
	if e.Kind == EventOriginState && e.State != "up" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n++
	}
}

// TestDiskStalls: while the disk is behind, nothing is read from the links, which does not count as their silence.
func TestDiskStalls(t *testing.T) {
	for _, name := range []string{"alg3", schedule.Default} {
		for _, behind := range []time.Duration{0, time.Second, 5 * time.Second} {
			t.Run(name+", "+behind.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var seen suspicions
					e := newWorldEngine(t, newWorld(), func(c *Config) {
						c.Observers, c.Scheduler, c.SlowLinks = []Observer{&seen}, scheduler(name), health.SlowGuarded
					})
					resp, err := e.Get(t.Context(), &Request{Target: Target{Scheme: "http", Host: "o:80", Addr: "o:80", Path: "/"}, Header: http.Header{}})
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					d := &stalls{e: e, behind: behind}
					if n, err := resp.Body.WriteAtTo(d, nil); n != worldSize || err != nil {
						t.Errorf("%d bytes, %v", n, err)
					}
					if d.held < scatterHold/2 {
						t.Errorf("only %d bytes were held for the disk", d.held)
					}
					if seen.n > 0 {
						t.Errorf("links were suspected %d times", seen.n)
					}
				})
			})
		}
	}
}
