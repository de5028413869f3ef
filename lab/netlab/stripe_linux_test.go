package netlab

import (
	"slices"
	"testing"
)

func TestTurns(t *testing.T) {
	for _, c := range []struct{ weights, want []int }{
		{[]int{1, 1}, []int{0, 1}},
		{[]int{1, 2}, []int{1, 0, 1}},
		{[]int{0, 1}, []int{1}},
		{[]int{3, 1}, []int{0, 0, 1, 0}},
	} {
		if got := turns(c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.weights, got)
		}
	}
}
