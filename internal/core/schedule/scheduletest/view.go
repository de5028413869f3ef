package scheduletest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Start is the time of every call.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Range returns [start, end).
func Range(start, end int64) segment.Range { return segment.Range{Start: start, End: end} }

// Link returns a usable link without requests.
func Link(rate, peak float64, rtt time.Duration) schedule.Link {
	return schedule.Link{
		Usable: true,
		CanAsk: true,
		Rate:   rate,
		Peak:   peak,
		RTT:    rtt,
	}
}

// NewView returns the view of a transfer without any requests.
func NewView(size, window int64, links ...schedule.Link) *schedule.View {
	return &schedule.View{
		Object: Range(0, size),
		Limit:  min(size, window),
		Window: window,
		Free:   []segment.Range{Range(0, size)},
		Links:  links,
	}
}

// Take removes r from the free ranges.
func Take(v *schedule.View, r segment.Range) {
	var free segment.Set
	for _, f := range v.Free {
		free.Add(f)
	}
	free.Remove(r)
	v.Free = free.Ranges()
}

// Ask adds an attempt that fetches r on link i and has arrived up to cursor.
func Ask(v *schedule.View, i int8, r segment.Range, cursor int64) *schedule.Attempt {
	Take(v, r)
	v.Attempts = append(v.Attempts, schedule.Attempt{
		ID:      uint32(len(v.Attempts) + 1),
		Link:    i,
		Range:   r,
		Cursor:  cursor,
		HasHead: cursor > r.Start,
	})
	v.Links[i].Running++
	v.Links[i].Asked += r.End - cursor
	return &v.Attempts[len(v.Attempts)-1]
}

// Apply carries out a decision, as the machine does.
func Apply(v *schedule.View, d schedule.Decision) {
	if d.From != 0 && !d.Hedge {
		find(v, d.From).Stolen = true
	}
	Ask(v, d.Link, d.Range, d.Range.Start)
}

func find(v *schedule.View, id uint32) *schedule.Attempt {
	for i := range v.Attempts {
		if v.Attempts[i].ID == id {
			return &v.Attempts[i]
		}
	}
	return nil
}

// Fetch returns the decision to fetch a free range.
func Fetch(i int8, r segment.Range, rule schedule.Rule) schedule.Decision {
	return schedule.Decision{Do: schedule.Fetch, Link: i, Range: r, Rule: rule}
}

// Expect fails the test unless got equals want.
func Expect(t *testing.T, got, want schedule.Decision) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", Show(got), Show(want))
	}
}

// Show returns a decision as text.
func Show(d schedule.Decision) string {
	verb := []string{"wait", "fetch", "open"}[d.Do]
	return fmt.Sprintf("%s link %d %v from %d hedge %v until %v: %v", verb, d.Link, d.Range, d.From, d.Hedge, d.Until,
		d.Rule)
}

// Lawful describes what is wrong with a decision; it returns "" if nothing is.
func Lawful(v *schedule.View, d schedule.Decision) string {
	if d.Do == schedule.Wait {
		return ""
	}
	if d.Do != schedule.Fetch {
		return "unknown verb"
	}
	if int(d.Link) < 0 || int(d.Link) >= len(v.Links) || !v.Links[d.Link].Usable || !v.Links[d.Link].CanAsk {
		return "the link may not be asked"
	}
	r := d.Range
	inside := func(o segment.Range) bool { return r.Start >= o.Start && r.End <= o.End }
	from := find(v, d.From)
	switch {
	case r.Empty():
		return "an empty range"
	case r.Start >= v.Limit:
		return "begins beyond the reorder window"
	case d.Rule == schedule.NothingToDo:
		return "no reason"
	case d.From == 0 && (d.Hedge || !slices.ContainsFunc(v.Free, inside)):
		return "the range is not free"
	case d.From == 0:
		return ""
	case from == nil:
		return "from an attempt that does not run"
	case from.Link == d.Link:
		return "a link takes from itself"
	case !inside(Range(from.Cursor, from.Range.End)):
		return fmt.Sprintf("takes bytes that attempt %d does not owe: [%d,%d)", from.ID, from.Cursor, from.Range.End)
	case !d.Hedge && (from.Stolen || from.Hedge):
		return "cuts an attempt twice, or a second copy"
	}
	return ""
}

// EqualLinks returns n identical links.
func EqualLinks(n int) (ls []schedule.Link) {
	for range n {
		ls = append(ls, Link(1e6, 1e6, 20*time.Millisecond))
	}
	return ls
}

// Drain calls s and applies its decisions until it decides to wait. It returns the decisions, and the last one
// separately.
func Drain(t *testing.T, s schedule.Scheduler, v *schedule.View) (ds []schedule.Decision, last schedule.Decision) {
	t.Helper()
	for range 100 {
		d := s.Next(Start, v)
		if wrong := Lawful(v, d); wrong != "" {
			t.Fatalf("%s: %s", wrong, Show(d))
		}
		if d.Do == schedule.Wait {
			return ds, d
		}
		Apply(v, d)
		ds = append(ds, d)
	}
	t.Fatal("does not come to rest")
	return nil, last
}

// SameDecisions fails the test unless got equals want.
func SameDecisions(t *testing.T, got []schedule.Decision, want ...schedule.Decision) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", Show(want[i]))
		case i >= len(want):
			t.Errorf("too much: %s", Show(got[i]))
		default:
			Expect(t, got[i], want[i])
		}
	}
}
