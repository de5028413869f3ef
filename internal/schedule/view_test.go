package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
)

const (
	kb   = 1e3 // the paper's units are decimal
	mb   = 1e6
	kib  = 1 << 10
	mib  = 1 << 20
	mbit = 1e6 / 8 // bytes per second
	ms   = time.Millisecond
	huge = 1 << 40 // a reorder window that is never full
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func rng(start, end int64) segment.Range { return segment.Range{Start: start, End: end} }

// link is a usable link without requests.
func link(rate, peak float64, rtt time.Duration) schedule.Link {
	return schedule.Link{Usable: true, CanAsk: true, Rate: rate, Peak: peak, RTT: rtt}
}

// newView is the view of a transfer of which nobody has asked for anything.
func newView(size, window int64, links ...schedule.Link) *schedule.View {
	return &schedule.View{
		Object: rng(0, size), Limit: min(size, window), Window: window, Free: []segment.Range{rng(0, size)}, Links: links,
	}
}

// take makes r not free.
func take(v *schedule.View, r segment.Range) {
	var free segment.Set
	for _, f := range v.Free {
		free.Add(f)
	}
	free.Remove(r)
	v.Free = free.Ranges()
}

// ask lets link i fetch r; it has come as far as cursor.
func ask(v *schedule.View, i int8, r segment.Range, cursor int64) *schedule.Attempt {
	take(v, r)
	v.Attempts = append(v.Attempts, schedule.Attempt{
		ID: uint32(len(v.Attempts) + 1), Link: i, Range: r, Cursor: cursor, Headed: cursor > r.Start,
	})
	v.Links[i].Running++
	v.Links[i].Asked += r.End - cursor
	return &v.Attempts[len(v.Attempts)-1]
}

// apply does what a decision says, as the machine does.
func apply(v *schedule.View, d schedule.Decision) {
	if d.From != 0 && !d.Hedge {
		find(v, d.From).Cut = true
	}
	ask(v, d.Link, d.Range, d.Range.Start)
}

func find(v *schedule.View, id uint32) *schedule.Attempt {
	for i := range v.Attempts {
		if v.Attempts[i].ID == id {
			return &v.Attempts[i]
		}
	}
	return nil
}

func fetch(i int8, r segment.Range, why schedule.Reason) schedule.Decision {
	return schedule.Decision{Do: schedule.Fetch, Link: i, Range: r, Why: why}
}

func expect(t *testing.T, got, want schedule.Decision) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", show(got), show(want))
	}
}

func show(d schedule.Decision) string {
	verb := []string{"wait", "fetch", "open"}[d.Do]
	return fmt.Sprintf("%s link %d %v from %d hedge %v until %v: %v", verb, d.Link, d.Range, d.From, d.Hedge, d.Until,
		d.Why)
}

// lawful says what is wrong with a decision, "" if nothing is.
func lawful(v *schedule.View, d schedule.Decision) string {
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
	case d.Why == schedule.NothingToDo:
		return "no reason"
	case d.From == 0 && (d.Hedge || !slices.ContainsFunc(v.Free, inside)):
		return "the range is not free"
	case d.From == 0:
		return ""
	case from == nil:
		return "from an attempt that does not run"
	case from.Link == d.Link:
		return "a link takes from itself"
	case !inside(rng(from.Cursor, from.Range.End)):
		return fmt.Sprintf("takes what attempt %d does not owe: [%d,%d)", from.ID, from.Cursor, from.Range.End)
	case !d.Hedge && (from.Cut || from.Hedge):
		return "cuts an attempt twice, or a second copy"
	}
	return ""
}
