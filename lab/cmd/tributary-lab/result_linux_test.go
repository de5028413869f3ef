package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   quartiles
	}{
		{nil, quartiles{}},
		{[]float64{7}, quartiles{7, 7, 7}},
		{[]float64{3, 1}, quartiles{1.5, 2, 2.5}},
		{[]float64{5, 1, 4, 2, 3}, quartiles{2, 3, 4}},
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, quartiles{3, 5, 7}},
		{[]float64{1, 2, 3, 4}, quartiles{1.75, 2.5, 3.25}},
	} {
		if got := quartilesOf(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// tape returns a tape that delivered the given bytes in each step, the last data packet at its end.
func tape(began time.Time, payload ...int64) netlab.Tape {
	t := netlab.Tape{Began: began, Step: time.Second, Payload: payload}
	if len(payload) > 0 {
		t.Last = began.Add(time.Duration(len(payload)) * time.Second)
	}
	return t
}

func TestExamine(t *testing.T) {
	now := time.Now()
	const s = time.Second
	m := measurement{Seconds: 4, began: now, tapes: []netlab.Tape{
		tape(now, 100, 100, 100, 100), tape(now.Add(-s), 0, 50, 50, 50), tape(now),
	}}
	m.examine(550)
	if m.LinkDelta != 1 || m.InOrder != nil || m.Pause != nil {
		t.Errorf("an output that was not observed: %+v", m)
	}
	m.download.Reads = []netlab.Read{{At: 500 * time.Millisecond, N: 100}, {At: s, N: 50}, {At: 2 * s, N: 90}, {At: 4 * s, N: 310}}
	m.examine(550)
	if math.Abs(*m.InOrder-80) > 1e-9 || *m.Pause != 2 || *m.PauseAt != 2 { // 240 of 2 x 100 + 2 x 50
		t.Errorf("in order %v, pause %v at %v", *m.InOrder, *m.Pause, *m.PauseAt)
	}
}

// TestReturned: a link is in use again once it has carried enough since its last return.
func TestReturned(t *testing.T) {
	began := time.Now()
	m := measurement{from: began, until: began.Add(6 * time.Second)}
	tape := tape(began, 90_000, 0, 10_000, 0, 80_000, 80_000)
	events := []netlab.Event{
		{At: time.Second, Link: "wifi", What: netlab.EventBlackhole}, {At: 2 * time.Second, Link: "wifi", What: netlab.EventRestore},
	}
	m.returned("lte", tape, events)
	if m.Back != nil {
		t.Errorf("lte was away: %v", *m.Back)
	}
	m.returned("wifi", tape, events)
	if m.Back == nil || *m.Back != 3 { // 10 kB are not enough, and a step is a second here
		t.Errorf("%v", m.Back)
	}
	m.Back = nil
	m.returned("wifi", tape, append(events, netlab.Event{At: 6 * time.Second, Link: "wifi", What: netlab.EventRestore}))
	if m.Back != nil {
		t.Errorf("it carried nothing any more: %v", *m.Back)
	}
}

func TestCount(t *testing.T) {
	now := time.Now()
	m := measurement{from: now.Add(-time.Second), until: now.Add(time.Second)}
	m.count([]netlab.Request{
		{Client: "10.77.1.2", Connection: 1, Began: now},
		{Client: "10.77.2.2", Connection: 1, Began: now},
		{Client: "10.77.1.2", Connection: 1, Began: now},
		{Client: "10.77.1.2", Connection: 4, Began: now},
		{Client: "10.77.1.2", Connection: 5, Began: now.Add(-2 * time.Second)},
		{Client: "10.77.1.2", Connection: 6, Began: now.Add(2 * time.Second)},
	}, map[string]string{"10.77.1.2": "wifi", "10.77.2.2": "lte"})
	if m.Requests != 4 || m.Connections["wifi"] != 2 || m.Connections["lte"] != 1 {
		t.Errorf("%+v", m)
	}
}

func TestSummary(t *testing.T) {
	c := &contenderResult{Name: "a"}
	plain := &contenderResult{Name: "single:wifi", plain: true}
	r := &result{Scenario: "test", Size: 1000, Limit: []float64{2, 2, 2}, Contenders: []*contenderResult{c, plain}, Links: []string{"wifi", "lte"}}
	for i, took := range []float64{4, 2, 2.5} {
		c.add(measurement{Seconds: took, Delivered: 1200, LinkDelta: took, Connections: map[string]int{"wifi": i, "lte": 1}}, 2, 1)
		plain.add(measurement{Seconds: 4, Delivered: 1100}, 2, 1)
	}
	r.sum()
	if c.Percent != (quartiles{65, 80, 90}) || c.Physical.Median != 40 || c.LinkDelta.Median != 2.5 {
		t.Errorf("%+v", c)
	}
	if r.Plain != 1100 || math.Abs(c.Waste.Median-10) > 1e-9 || plain.Waste.Median != 0 {
		t.Errorf("plain %d, waste %v and %v", r.Plain, c.Waste, plain.Waste)
	}
	if got := r.connections(c); got != "2+1" {
		t.Errorf("connections %s", got)
	}
	if c.typical() != 2 {
		t.Errorf("typical round %d", c.typical())
	}
	c.add(measurement{Seconds: 1, Delivered: 9000, Error: "wrong bytes"}, 2, 1)
	r.sum()
	if c.Percent.Median != 65 || c.Failed != 1 || c.Waste.Median > 11 || !slices.Equal(c.errors(), []string{"wrong bytes"}) {
		t.Errorf("a failed round counts as 0 and in nothing else: %+v", c)
	}
	r.Contenders = r.Contenders[:1]
	if got := r.plainBytes(); got != 1000+52+164+352 {
		t.Errorf("computed %d bytes for a plain download", got)
	}
	var table, md strings.Builder
	if err := r.print(&table); err != nil || !strings.Contains(table.String(), "1 FAILED") {
		t.Errorf("%v: %s", err, table.String())
	}
	if r.markdown(&md); strings.Count(md.String(), "\n|") != 3 || !strings.Contains(md.String(), "| a | ") {
		t.Errorf("%s", md.String())
	}
}
