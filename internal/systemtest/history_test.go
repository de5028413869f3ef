package systemtest

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/segment"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestHistoryOfAnEarlierRun: a proxy that starts on networks that an earlier one used divides the first bytes in the ratio of their
// rates, before any byte has shown these rates, and also for a new origin. Without a history it does not.
func TestHistoryOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.Threshold = 128 << 10
	cfg.Link = map[string]config.Link{"wifi": {MaxRate: 3_000_000}, "lte": {MaxRate: 1_000_000}}
	history := filepath.Join(t.TempDir(), "history")
	var held atomic.Pointer[chan struct{}] // until it is closed, only heads and one byte each arrive
	stall := func(x *Exchange) {
		if open := held.Load(); open != nil {
			StallAfter(1, *open)(x)
		}
	}
	known, other := New(t, Object{Size: 4 << 20}), New(t, Object{Size: 15 << 20}, stall)
	first := newRigRemembering(t, known, cfg, history, "wifi", "lte")
	whole(t, first.get(nil), known.Object())
	first.stop()
	cfg.Link = nil // no rate limit for the rest
	want := math.Log(remembered(t, history, known, "wifi") / remembered(t, history, known, "lte"))
	if want < math.Log(2) {
		t.Fatalf("the links are 3 to 1 and remembered as %.2f to 1", math.Exp(want))
	}

	for _, c := range []struct {
		name, history string
		divided       bool
	}{{"no history", "", false}, {"a history", history, true}} {
		open := make(chan struct{})
		held.Store(&open)
		r := newRigRemembering(t, other, cfg, c.history, "wifi", "lte")
		before := len(other.Requests())
		got := make(chan seen, 1)
		go func() { got <- r.get(nil) }()
		var asked [2]int64 // first copies of requested bytes, by link
		until(t, "a copy: the links have been silent for that long, and were asked for no more", limit, func() bool {
			var ranges segment.Set
			asked = [2]int64{}
			for _, q := range other.Requests()[before:] {
				spec, ok := byterange.ParseRange(q.Range)
				if !ok {
					t.Fatalf("Range %q", q.Range)
				}
				if spec.End-spec.First > 4<<20 { // the reserve
					continue
				}
				n := ranges.Add(segment.Range{Start: spec.First, End: spec.End})
				asked[q.Node] += n
				if 2*n < spec.End-spec.First { // a spot check overlaps less of a range
					return true
				}
			}
			return false
		})
		ratio := math.Log(float64(asked[0]) / float64(asked[1]))
		if within := math.Abs(ratio-want) <= math.Log(1.1); within != c.divided {
			t.Errorf("%s: the links are remembered as %.2f to 1 and first asked for %v bytes", c.name, math.Exp(want), asked)
		}
		close(open)
		whole(t, <-got, other.Object())
		r.stop()
	}
}

// remembered returns the rate of a link in the file.
func remembered(t *testing.T, file string, s *Server, link string) float64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := estimate.UnmarshalRecord(b)
	if err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "http://"), "/")
	return r.Link(time.Now(), link, estimate.Origin("http://"+origin)).Rate
}
