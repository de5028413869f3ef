package systemtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestSpotCheck downloads over two links. One leads to a server that has other bytes under the same headers. The difference is
// detected each time: the client gets one object or a visible error, and never a mixture of two. Some downloads begin with the
// client's own GET, and for some the second link sends a request before the first response. 20 downloads of each kind, or
// TRIBUTARY_LIES (`make fuzz`: 100).
func TestSpotCheck(t *testing.T) {
	downloads := int64(number(t, "TRIBUTARY_LIES", 20))
	for _, kind := range []struct {
		name  string
		fault Fault
		bytes func(o Object) []byte // of the lying server
	}{
		{"R210 another object", OtherBytes(), func(o Object) []byte {
			x := &Exchange{Object: o}
			OtherBytes()(x)
			return x.Object.Bytes(0, o.Size)
		}},
		{"R210 the body shifted by one byte", ShiftsBody(1), func(o Object) []byte { return o.Bytes(1, o.Size+1) }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			var next, whole, visible, alone atomic.Int64
			var workers sync.WaitGroup
			for range 8 {
				workers.Go(func() {
					for seed := next.Add(1) - 1; seed < downloads; seed = next.Add(1) - 1 {
						t.Run(fmt.Sprint(seed), func(t *testing.T) {
							complete, both := spotted(t, uint64(seed), kind.fault, kind.bytes)
							switch {
							case !both:
								alone.Add(1)
							case complete:
								whole.Add(1)
							default:
								visible.Add(1)
							}
						})
					}
				})
			}
			workers.Wait()
			t.Logf("%d downloads: %d complete, %d visible errors, %d over one link", downloads, whole.Load(), visible.Load(), alone.Load())
			if v := visible.Load(); v > downloads/20 {
				t.Errorf("%d visible errors: a check that comes in time costs nothing but the link", v)
			}
			if n := alone.Load(); n > downloads/4 { // on a busy machine, one link may finish before the other starts
				t.Errorf("one link carried everything in %d downloads: they show nothing", n)
			}
		})
	}
}

// spotted runs one download over two links. One of them leads to the lie. It reports whether the client got a whole object, and
// whether both links delivered some of it.
func spotted(t *testing.T, seed uint64, lie Fault, bytesOf func(Object) []byte) (complete, both bool) {
	rng := rand.New(rand.NewPCG(seed, 210))
	liar := rng.IntN(2)
	object := Object{Size: 4e6 + rng.Int64N(1e6), Seed: seed}
	pace := func() int64 { return 2<<20 + rng.Int64N(10<<20) }
	s := New(t, object, OnNode(liar, lie), OnNode(0, RateLimit(pace())), OnNode(1, RateLimit(pace())))
	r := newRig(t, s, settings(), "wifi", "lte")
	h := http.Header{}
	if rng.IntN(2) == 0 {
		h.Set("Accept-Encoding", "gzip") // begins with its own GET
	}
	ext := ""
	if rng.IntN(2) == 0 {
		ext = ".iso" // requested ahead
	}
	got := fetch(client(t, r.url), s.URL()+ext, h)
	both = r.carried("wifi") > 0 && r.carried("lte") > 0
	switch {
	case both && !r.said.has("bytes differ from those of the others"):
		t.Errorf("%v: the lie on node %d was not noticed", got, liar)
	case got.err != nil:
	case wrong(s.Object(), got.body, 0) != "" && !bytes.Equal(got.body, bytesOf(s.Object())):
		t.Errorf("%v: neither object", got)
	case int64(len(got.body)) != object.Size:
		t.Errorf("%v: looks complete, the object has %d bytes", got, object.Size)
	}
	returned(t, r, 10*time.Second)
	return got.err == nil, both
}
