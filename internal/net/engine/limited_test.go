package engine

import (
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// TestLimited: the status of a transfer names the links over which the origin limits each connection, and no others.
func TestLimited(t *testing.T) {
	r := &run{fleetLinks: []*fleetLink{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}}}
	each := estimate.Entry{Each: 1e6}
	got := r.limited(transfer.State{Links: []transfer.LinkInfo{{Conns: 1}, {Learned: each, Conns: 6}, {}, {Learned: each}}})
	if want := []Limited{{"b", 1e6, 6}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
