package daemon

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/origin/origintest"
)

// TestRandomFaults downloads through origins whose answers break, stall, end early and lie at random: the client gets
// bytes of one version from the first on, all of them or a visible error, and nothing is left behind. 200 transfers, or
// TRIBUTARY_FAULTS.
func TestRandomFaults(t *testing.T) {
	n := 200
	if s := os.Getenv("TRIBUTARY_FAULTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("TRIBUTARY_FAULTS: %v", err)
		}
	}
	open := descriptors(t)
	var complete, injected atomic.Int64
	t.Run("transfers", func(t *testing.T) {
		for seed := range uint64(n) {
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
	if c := complete.Load(); 2*c < int64(n) {
		t.Errorf("%d of %d transfers are complete", c, n)
	}
	if i := injected.Load(); i < int64(n) {
		t.Errorf("%d faults in %d transfers", i, n)
	}
	until(t, "descriptors are closed", 2*time.Second, func() bool { return descriptors(t) <= open })
}

// randomFaults runs one transfer and reports whether the client got all of the object.
func randomFaults(t *testing.T, seed uint64, injected *atomic.Int64) bool {
	rng := rand.New(rand.NewPCG(seed, 11))
	object := Object{Size: 2*threshold + rng.Int64N(1<<20), Seed: seed}
	budget := atomic.Int64{} // faults that are left: an origin that is always at fault serves nobody
	budget.Store(1 + rng.Int64N(12))
	chance := 0.2 + 0.6*rng.Float64()
	node := rng.IntN(3) // 2 = both
	lies := rng.IntN(2) == 0
	s := New(t, object, RateLimit(4<<20), func(x *Exchange) {
		rng := rand.New(rand.NewPCG(seed, uint64(x.N))) // requests come at the same time
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
	r := newRig(t, s, cfg, "wifi", "lte")
	h := http.Header{}
	if rng.IntN(2) == 0 {
		h.Set("Accept-Encoding", "gzip") // begins with its own GET
	}
	got := r.get(h)
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
	returned(t, r)
	return got.err == nil
}

// newer returns the new version of an object.
func newer(o Object) Object {
	x := &Exchange{Object: o}
	NewVersion()(x)
	return x.Object
}

// breaks draws a way in which an answer breaks at a random byte.
func breaks(rng *rand.Rand, size int64) Fault {
	at := rng.Int64N(min(size, 256<<10))
	return []Fault{
		ResetAfter(at), ResetAfter(0), StallAfter(at, nil), ShortBody(1 + rng.Int64N(50_000)), ClosesEarly(), Ignored(),
		ConnectionClose(), SlowStart(time.Duration(rng.IntN(400)) * time.Millisecond), RateLimit(32 << 10), OutOfOrder(),
	}[rng.IntN(10)]
}

// falsehood draws a lie about a range that is not the first: it must show.
func falsehood(rng *rand.Rand) Fault {
	by := 1 + rng.Int64N(5000)
	return []Fault{
		WrongStart(by), WrongStart(-by), EndsBeyond(by), SurplusBody(by), NewVersion(), OtherETag(`"v2"`), NoContentRange(),
		ContentRange(fmt.Sprintf("bytes 0-%d/%d", by, 2*by)), WrongTotal(by), Multipart(), LoginPage(), IgnoresRange(),
		Garbage(), Status([]int{401, 403, 404, 410, 416, 429, 500, 503}[rng.IntN(8)]), Redirect("http://login.invalid/"),
		WeakETag(), NoValidator(),
	}[rng.IntN(17)]
}

// descriptors counts the open ones of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}
