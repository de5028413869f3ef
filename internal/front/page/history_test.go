package page

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/engine"
)

// TestHistoryMemory: an hour with the maximum number of links per sample takes less than 4 MiB.
func TestHistoryMemory(t *testing.T) {
	const most = 4 << 20
	links := make([]engine.LinkStatus, maxLinks+1)
	for i := range links {
		links[i].Name = fmt.Sprintf("link%d", i)
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var h history
	now := time.Unix(0, 0)
	before := heap()
	for range 3600 {
		now = now.Add(step)
		for i := range links {
			links[i].Bytes += 1_000_000
		}
		h.add(now, links)
	}
	took := heap() - before
	t.Logf("%d samples take %d bytes", len(h.samples), took)
	if took > most || len(h.samples) != kept || len(h.samples[0].Rates) != maxLinks {
		t.Errorf("%d samples of %d links take %d bytes, want %d of %d in %d at most", len(h.samples), len(h.samples[0].Rates), took, kept, maxLinks, most)
	}
	runtime.KeepAlive(h)
}
