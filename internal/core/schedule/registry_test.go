package schedule_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/schedule/scheduletest"
)

func TestConformance(t *testing.T) { scheduletest.Conformance(t, schedule.Names(), schedule.New) }

func BenchmarkNext(b *testing.B) { scheduletest.Benchmark(b, schedule.Names(), schedule.New) }

func TestRegistry(t *testing.T) {
	names := schedule.Names()
	if !slices.IsSorted(names) || !slices.Contains(names, schedule.Default) {
		t.Errorf("names %v, default %q", names, schedule.Default)
	}
	_, err := schedule.New("alg4")
	if err == nil || !strings.Contains(err.Error(), `"alg4"`) || !strings.Contains(err.Error(), schedule.Default) {
		t.Errorf("the error does not say what to use: %v", err)
	}
}
