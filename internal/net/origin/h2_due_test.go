package origin

import (
	"errors"
	"testing"
)

// TestDue: the origin may send no more of an answer that nobody wants, or whose stream has ended.
func TestDue(t *testing.T) {
	for name, c := range map[string]struct {
		x    exchange
		want int64
	}{
		"R191 the rest of an answer":         {exchange{id: 1, size: 1000, received: 400, taken: 400}, 600},
		"R191 nothing of one nobody wants":   {exchange{id: 1, size: 1000, received: 400, taken: 400, unwanted: true}, 0},
		"R191 nothing after its stream":      {exchange{id: 1, size: 1000, err: errors.New("reset")}, 0},
		"R191 no more than the window holds": {exchange{id: 1, size: 10 * streamWindow, received: streamWindow}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.x.due(); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
