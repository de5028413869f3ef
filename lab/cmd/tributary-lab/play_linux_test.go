package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlayPrints(t *testing.T) {
	soon := 0.25
	r := playRound{
		Seconds: 6.5, Physical: 97.25, Idle: 0.02, Right: true, Bytes: 20e6, Waste: 40e3, Pause: 0.4, PauseBegan: 2.1,
		Links: []playLink{{"wifi", 4.9e6, 40e3, 5.2e6}},
		Events: []playEvent{
			{2, "wifi", "blackhole", nil, nil}, {5, "wifi", "restore", &soon, nil},
		},
	}
	var out bytes.Buffer
	r.print(&out, 1)
	want := `round 1: 6.50 s, 97.2 % of the physical bound, bytes right, waste 0.04 MB, longest pause 400 ms from 2.10 s, links idle for 20 ms
  wifi     4.90 MB of the body (waste 0.04 MB), carried 5.20 MB
   2.00 s wifi blackhole
   5.00 s wifi restore: client's next byte after 250 ms, link's next byte never
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	playRound{Error: "no route"}.print(&out, 2)
	if s := out.String(); !strings.Contains(s, "WRONG") || !strings.Contains(s, "FAILED: no route") {
		t.Errorf("printed %s", s)
	}
}

func TestCompareTakesTurns(t *testing.T) {
	var order []string
	fetch := func(name string, took time.Duration) fetcher {
		return func(context.Context, string) (time.Duration, error) {
			order = append(order, name)
			return took, nil
		}
	}
	r, err := compare(t.Context(), "x", "", 3, fetch("direct", 40*time.Millisecond), fetch("proxied", 41*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "direct proxied proxied direct direct proxied proxied direct" {
		t.Errorf("order %s", got)
	}
	if !slices.Equal(r.Direct, []float64{40, 40, 40}) || !slices.Equal(r.Proxied, []float64{41, 41, 41}) ||
		!slices.Equal(r.Difference, []float64{1, 1, 1}) {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := printTTFB(&out, []ttfbResult{r}); err != nil || !strings.Contains(out.String(), "40.00 ms   41.00 ms    +1.00 ms") {
		t.Errorf("%v\n%s", err, out.String())
	}
	fails := func(context.Context, string) (time.Duration, error) { return 0, errors.New("no") }
	if _, err := compare(t.Context(), "x", "", 3, fetch("direct", 1), fails); err == nil {
		t.Error("the error is lost")
	}
}
