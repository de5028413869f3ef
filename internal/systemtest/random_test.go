package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestRandomFaults downloads over one to four links, over HTTP/1.1 and HTTP/2, through links that flap and from origins whose
// answers break, stall, end early and lie at random. The client gets bytes of one version from the first one on, all of them or a
// visible error, and nothing is left behind. It runs 200 transfers, or TRIBUTARY_FAULTS (`make fuzz`: 12,000), from TRIBUTARY_SEED
// or a seed from the clock.
func TestRandomFaults(t *testing.T) {
	n := number(t, "TRIBUTARY_FAULTS", 200)
	first := number(t, "TRIBUTARY_SEED", uint64(time.Now().UnixNano()))
	t.Logf("TRIBUTARY_SEED=%d", first)
	open := descriptors(t)
	var complete, injected atomic.Int64
	t.Run("transfers", func(t *testing.T) {
		for i := range n {
			seed := first + i
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				if randomFaults(t, seed, &injected) {
					complete.Add(1)
				}
			})
		}
	})
	t.Logf("%d transfers: %d complete, %d visible errors; %d answers were faulty",
		n, complete.Load(), int64(n)-complete.Load(), injected.Load())
	if c := complete.Load(); 2*uint64(c) < n {
		t.Errorf("%d of %d transfers are complete", c, n)
	}
	if i := injected.Load(); uint64(i) < n {
		t.Errorf("%d faults in %d transfers", i, n)
	}
	until(t, "descriptors are closed", 2*time.Second, func() bool { return descriptors(t) <= open })
}

// randomFaults runs one transfer and reports whether the client got the whole object.
func randomFaults(t *testing.T, seed uint64, injected *atomic.Int64) bool {
	rng := rand.New(rand.NewPCG(seed, 11))
	object := Object{Size: 2*threshold + rng.Int64N(1<<20), Seed: seed}
	budget := atomic.Int64{} // remaining faults: an origin that always fails serves no client
	budget.Store(1 + rng.Int64N(12))
	chance := 0.2 + 0.6*rng.Float64()
	node := rng.IntN(3) // 2 = both
	names := [][]string{{"wifi"}, {"wifi", "lte"}, {"wifi", "lte", "wifi2"}, {"wifi", "lte", "wifi2", "lte2"}}[min(rng.IntN(5), 3)]
	lies := rng.IntN(2) == 0
	s := New(t, object, RateLimit(4<<20), func(x *Exchange) {
		rng := rand.New(rand.NewPCG(seed, uint64(x.N))) // requests arrive concurrently
		if node != 2 && x.Node != node || rng.Float64() > chance || budget.Add(-1) < 0 {
			return
		}
		injected.Add(1)
		breaks(rng, object.Size)(x)
		if later := x.Range != "" && !strings.HasPrefix(x.Range, "bytes=0-"); lies && later {
			falsehood(rng)(x)
		}
	})
	cfg := settings()
	cfg.WaitForLink = 5 * time.Second
	u, secure := s.URL(), (*Secure)(nil)
	if rng.IntN(2) == 0 {
		u, secure = "https://a.secure.test/", s.Secure()
	}
	r := newRigWith(t, s, secure, cfg, names...)
	if rng.IntN(2) == 0 {
		defer r.flap(rng)()
	}
	h := http.Header{}
	if rng.IntN(2) == 0 {
		h.Set("Accept-Encoding", "gzip") // begins with its own GET
	}
	got := byProxy(r.url.Host, http.MethodGet, u, h)
	switch {
	case got.err == nil && got.status >= 502 && got.status <= 504:
		return false
	case got.status == 0: // closed before a head
		return false
	case got.status != http.StatusOK:
		t.Errorf("%v", got)
		return false
	}
	version := object
	if got.header.Get("Etag") != `"v1"` {
		version = newer(object)
	}
	if w := wrong(version, got.body, 0); w != "" {
		t.Errorf("%v: %s", got, w)
	}
	if got.err == nil && int64(len(got.body)) != version.Size {
		t.Errorf("%v: looks complete, the object has %d bytes", got, version.Size)
	}
	returned(t, r, 10*time.Second) // leaks stay, however busy the machine is
	return got.err == nil
}

// flap repeatedly silences or resets one of two paths until stop.
func (r *rig) flap(rng *rand.Rand) (stop func()) {
	p := []*path{r.wifi, r.lte}[rng.IntN(2)]
	up, down := time.Duration(10+rng.IntN(300))*time.Millisecond, time.Duration(5+rng.IntN(600))*time.Millisecond
	reset := rng.IntN(2) == 0
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for turn := 0; ; turn++ {
			wait := up
			if turn%2 == 1 {
				if wait = down; reset {
					p.resetAll()
				} else {
					p.silence()
				}
			}
			select {
			case <-time.After(wait):
				p.speak()
			case <-ctx.Done():
				p.speak()
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// newer returns the new version of an object.
func newer(o Object) Object {
	x := &Exchange{Object: o}
	NewVersion()(x)
	return x.Object
}

// breaks draws a way for an answer to break at a random byte.
func breaks(rng *rand.Rand, size int64) Fault {
	at := rng.Int64N(min(size, 256<<10))
	return []Fault{
		ResetAfter(at), ResetAfter(0), StallAfter(at, nil), ShortBody(1 + rng.Int64N(50_000)), ClosesEarly(), Ignored(),
		ConnectionClose(), SlowStart(time.Duration(rng.IntN(400)) * time.Millisecond), RateLimit(32 << 10), OutOfOrder(),
	}[rng.IntN(10)]
}

// falsehood draws a lie about a range other than the first. It must be noticed.
func falsehood(rng *rand.Rand) Fault {
	by := 1 + rng.Int64N(5000)
	return []Fault{
		WrongStart(by), WrongStart(-by), EndsBeyond(by), SurplusBody(by), NewVersion(), OtherETag(`"v2"`), NoContentRange(),
		ContentRange(fmt.Sprintf("bytes 0-%d/%d", by, 2*by)), WrongTotal(by), Multipart(), LoginPage(), IgnoresRange(),
		Garbage(), Status([]int{401, 403, 404, 410, 416, 429, 500, 503}[rng.IntN(8)]), Redirect("http://login.invalid/"),
		WeakETag(), NoValidator(),
	}[rng.IntN(17)]
}

// descriptors returns the number of open file descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}
