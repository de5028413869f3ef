package netlab

import (
	"testing"
	"time"
)

func TestWhatTheClientSaw(t *testing.T) {
	d := Download{Reads: []Read{{10 * ms, 1}, {20 * ms, 1}, {50 * ms, 1}, {80 * ms, 1}, {81 * ms, 1}}}
	if pause, began := d.LongestPause(); pause != 30*ms || began != 20*ms {
		t.Errorf("a pause of %s from %s, want the first of the longest: 30ms from 20ms", pause, began)
	}
	if d.FirstByte() != 10*ms || d.After(20*ms) != 20*ms || d.After(21*ms) != 50*ms || d.After(82*ms) != -1 {
		t.Error("times of reads")
	}
	if pause, _ := (Download{}).LongestPause(); pause != 0 || (Download{}).FirstByte() != -1 {
		t.Error("a download without a byte")
	}
}

func TestCarriesAfter(t *testing.T) {
	samples := []sample{
		{0, []int64{0, 0}}, {20 * ms, []int64{5, 0}}, {40 * ms, []int64{5, 0}}, {60 * ms, []int64{9, 0}}, {80 * ms, []int64{9, 0}},
	}
	for _, tt := range []struct {
		link       int
		from, want time.Duration
	}{
		{0, 0, 20 * ms}, {0, 25 * ms, 35 * ms}, {0, 60 * ms, 0}, {0, 61 * ms, -1}, {1, 0, -1},
	} {
		if got := carriesAfter(samples, tt.link, tt.from); got != tt.want {
			t.Errorf("link %d from %s: %s, want %s", tt.link, tt.from, got, tt.want)
		}
	}
}

func TestLongestIdle(t *testing.T) {
	at := func(t time.Duration, wifi, lte int64) sample { return sample{t, []int64{wifi, lte}} }
	event := func(t time.Duration, link, what string) PlayedEvent {
		return PlayedEvent{Event: Event{Link: link, What: what}, Began: t}
	}
	samples := []sample{
		at(0, 0, 0), at(20*ms, 0, 0), at(40*ms, 5, 0), at(60*ms, 5, 2), at(80*ms, 5, 2), at(100*ms, 5, 2), at(120*ms, 6, 2), at(140*ms, 6, 2),
	}
	for _, tt := range []struct {
		name   string
		events []PlayedEvent
		want   time.Duration
	}{
		{"both are up", nil, 60 * ms},
		{"one is up", []PlayedEvent{event(50*ms, "wifi", EventBlackhole), event(110*ms, "wifi", EventRestore)}, 60 * ms},
		{"none is, for a while", []PlayedEvent{
			event(50*ms, "wifi", EventDown), event(65*ms, "lte", EventRemoveAddrs), event(105*ms, "wifi", EventUp),
		}, 20 * ms},
		{"none is between two samples", []PlayedEvent{
			event(50*ms, "wifi", EventDown), event(65*ms, "lte", EventRemoveAddrs), event(75*ms, "wifi", EventUp),
		}, 50 * ms},
	} {
		if got := longestIdle(samples, tt.events, 2); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := longestIdle(nil, nil, 2); got != 0 {
		t.Errorf("nothing was seen: %v", got)
	}
}

func TestDownload(t *testing.T) {
	l := start(t, twoLinks())
	n := serve(t, l)
	o := object(t, n, 300_000)
	d, err := l.Download(t.Context(), "", o.URL)
	if err != nil || !d.Is(o) || d.Status != 200 || d.FirstByte() <= 0 || d.Took < d.FirstByte() {
		t.Errorf("%d bytes, status %d, %v", d.Bytes, d.Status, err)
	}
	if d, err := l.Download(t.Context(), "", o.URL+"-none"); err != nil || d.Status != 404 || d.Is(o) {
		t.Errorf("status %d, %v", d.Status, err)
	}
	if _, err := l.Download(t.Context(), ProxyAddr, o.URL); err == nil {
		t.Error("no error without a proxy")
	}
}
