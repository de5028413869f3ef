package literature_test

import (
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/schedule/scheduletest"
	"github.com/tributary-http/tributary/lab/literature"
)

// ours returns the names of this package's schedulers.
func ours() []string {
	return slices.DeleteFunc(literature.Names(), func(name string) bool { return slices.Contains(schedule.Names(), name) })
}

func TestConformance(t *testing.T) { scheduletest.Conformance(t, ours(), literature.New) }

func BenchmarkNext(b *testing.B) { scheduletest.Benchmark(b, ours(), literature.New) }

func TestRegistry(t *testing.T) {
	names := literature.Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names %v", names)
	}
	for _, name := range names {
		if s, err := literature.New(name); s == nil || err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := literature.New("alg4"); err == nil {
		t.Error("alg4 is known")
	}
}
