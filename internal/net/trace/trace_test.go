package trace_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/trace"
)

func TestRecorder(t *testing.T) {
	began := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	r := trace.NewRecorder(began)
	r.Add(at(0), "lte", 0, 70)
	r.Add(at(99), "lte", 1000, 0)
	r.Add(at(100), "lte", 10, 5)
	r.Add(at(450), "wifi", 7, 0)
	r.Add(at(-10), "wifi", 1, 0) // a clock that was set back
	want := trace.Trace{Began: began, Step: 100 * time.Millisecond, Links: []trace.Link{
		{Name: "lte", Down: []int64{1000, 10}, Up: []int64{70, 5}},
		{Name: "wifi", Down: []int64{1, 0, 0, 0, 7}},
	}}
	got := r.Trace()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	var b bytes.Buffer
	if err := got.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := trace.Read(&b)
	want.Links[1].Up = []int64{}
	if err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("read %+v, %v", again, err)
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		``:                               "not a trace",
		`1 2 3`:                          "not a trace",
		`{"format":"x","step_ms":100}`:   "not a trace",
		`{"format":"tributary trace 1"}`: "steps of 0 ms",
		`{"format":"tributary trace 1","step_ms":1e300}`:                                          "steps of",
		`{"format":"tributary trace 1","step_ms":100,"links":[{"name":"a","down_bytes":[1,-1]}]}`: `"a": -1 bytes in step 2`,
		`{"format":"tributary trace 1","step_ms":50,"links":[{"name":"a","down_bytes":[1]}]}`:     "",
	} {
		_, err := trace.Read(strings.NewReader(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
