package scheduletest

import "github.com/tributary-http/tributary/internal/core/schedule"

// bigView returns the view of a transfer over 4 links with 1,000 attempts and 1,000 free ranges. Every link is busy.
func bigView() *schedule.View {
	const n, piece = 1000, 1e6
	v := NewView(2*n*piece, 1<<40, EqualLinks(4)...)
	v.Free = v.Free[:0]
	for i := range int64(n) {
		at := 2 * i * piece
		v.Attempts = append(v.Attempts, schedule.Attempt{
			ID:      uint32(i + 1),
			Link:    int8(i % 4),
			Range:   Range(at, at+piece),
			Cursor:  at + 1,
			HasHead: true,
		})
		l := &v.Links[i%4]
		l.Running++
		l.Asked += piece - 1
		v.Free = append(v.Free, Range(at+piece, at+2*piece))
	}
	return v
}

// Costly returns views that take a scheduler through each of its paths: requesting, waiting, taking a tail, and cutting
// a range.
func Costly() map[string]*schedule.View {
	ask1 := bigView()
	ask1.Links[3].Running, ask1.Links[3].Asked = 1, 1
	tail := bigView()
	tail.Free = nil
	tail.Links[3].Running, tail.Links[3].Asked = 1, 1
	lost := bigView()
	for i := range lost.Links {
		lost.Links[i].Usable = false
	}
	idle := bigView()
	idle.Links[3].Running, idle.Links[3].Asked = 0, 0
	for i := 3; i < len(idle.Attempts); i += 4 {
		idle.Attempts[i].Link = 2
	}
	return map[string]*schedule.View{"busy": bigView(), "ask": ask1, "tail": tail, "lost": lost, "idle": idle}
}
