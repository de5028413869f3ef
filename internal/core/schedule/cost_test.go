package schedule_test

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/schedule/scheduletest"
)

// TestNoAllocations checks that the views that every scheduler is measured with take Alg3 through each of its paths, and that Hedge
// does not allocate either.
func TestNoAllocations(t *testing.T) {
	rule := map[string]schedule.Rule{"ask": schedule.Window, "tail": schedule.Steal, "idle": schedule.Window}
	for what, v := range scheduletest.Costly() {
		if d := guarded(v); d.Rule != rule[what] {
			t.Errorf("the view %q leads to %s", what, show(d))
		}
	}
	v := silent()
	if n := testing.AllocsPerRun(100, func() { schedule.Hedge(start, v, &v.Attempts[0], rng(1*mb, 3*mb)) }); n != 0 {
		t.Errorf("Rescue: %g allocations", n)
	}
}
