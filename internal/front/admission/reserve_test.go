package admission

import (
	"slices"
	"testing"
)

// TestReserve: a large number of users connect, since user IDs are cheap where a user has subordinate ones.
func TestReserve(t *testing.T) {
	t.Run("R190 many users", func(t *testing.T) {
		c := &Control{Limits: Limits{Each: 8, Sure: 4, All: 16, Reserve: 8}, Named: []uint32{0, 1000}}
		inside := 0
		for uid := range int64(200) {
			for range 8 {
				if c.Enter(User{UID: 100000 + uid}, true, &fake{}) == Admitted {
					inside++
				}
			}
		}
		if inside != 16+8 {
			t.Errorf("strangers have %d places, want 24", inside)
		}
		for _, uid := range []int64{0, 1000} {
			u := User{UID: uid}
			var places []Place
			for range 5 {
				places = append(places, c.Enter(u, true, &fake{}))
			}
			if !slices.Equal(places, []Place{Admitted, Admitted, Admitted, Admitted, Dropped}) {
				t.Errorf("user %d gets %v", uid, places)
			}
			c.Leave(u, Admitted, nil)
		}
		for range 9 { // those beyond All leave first
			c.Leave(User{UID: 100000}, Admitted, nil)
		}
	})
	t.Run("R190 silent connections of those who are not told apart make room", func(t *testing.T) {
		c := &Control{Limits: Limits{Each: 3, All: 3, Refused: 1}}
		conns := []*fake{{}, {}, {}, {}, {}, {}}
		for _, f := range conns[:3] {
			if c.Enter(Unknown, true, f) != Admitted {
				t.Fatal("no place")
			}
		}
		c.Spoke(conns[0])
		if c.Enter(Unknown, true, conns[3]) != Admitted || conns[0].closed || !conns[1].closed || conns[2].closed {
			t.Error("the newcomer does not get the place of the oldest silent connection")
		}
		c.Leave(Unknown, Admitted, conns[1]) // the server notices
		if c.all != 3 || c.of[Unknown] != 3 {
			t.Errorf("%d places, %v", c.all, c.of)
		}
		c.Spoke(conns[2])
		c.Spoke(conns[3])
		if c.Enter(Unknown, true, conns[4]) != Refused {
			t.Error("who speaks makes room")
		}
		for _, f := range []*fake{conns[0], conns[2], conns[3]} {
			c.Leave(Unknown, Admitted, f)
		}
		if c.all != 0 || len(c.of) != 0 || len(c.silent) != 0 {
			t.Errorf("%d places, %v, %d silent", c.all, c.of, len(c.silent))
		}
		alice := User{UID: 1}
		for range 3 {
			c.Enter(alice, true, conns[5])
		}
		if c.Enter(Unknown, true, &fake{}) != Refused || conns[5].closed {
			t.Error("a user who is known makes room")
		}
	})
}
