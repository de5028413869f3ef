package proxy

import (
	"net/http"
	"testing"
)

func TestWish(t *testing.T) {
	for _, text := range []string{"goal=frugal", "goal=fastest", " goal=cheapest ", "within=60", "within=0.5", "bitrate=4000000", "bitrate=4e6"} {
		if ctx, f := wish(t.Context(), http.Header{wishField: {text}}); f != nil || ctx == t.Context() {
			t.Errorf("%q: %+v", text, f)
		}
	}
	if ctx, f := wish(t.Context(), http.Header{"Accept": {"*/*"}}); f != nil || ctx != t.Context() {
		t.Errorf("without the field: %+v", f)
	}
	for _, lines := range [][]string{
		{""},
		{"goal"},
		{"goal="},
		{"goal=none"},
		{"Goal=frugal"},
		{"within=0"},
		{"within=-1"},
		{"within=NaN"},
		{"within=+Inf"},
		{"within=1m"},
		{"within=1e300"},
		{"bitrate=0"},
		{"bitrate=NaN"},
		{"bitrate=4Mbit/s"},
		{"goal=frugal, within=60"},
		{"goal=frugal", "goal=frugal"},
	} {
		if _, f := wish(t.Context(), http.Header{wishField: lines}); f == nil || f.status != http.StatusBadRequest {
			t.Errorf("%q: %+v", lines, f)
		}
	}
	h := http.Header{wishField: {"goal=frugal"}, "Accept": {"*/*"}}
	if removeHopByHop(h); len(h) != 1 {
		t.Errorf("the origin gets %v", h)
	}
}
