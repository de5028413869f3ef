package queue

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestListSize: the list never becomes so large that the next start could not read it.
func TestListSize(t *testing.T) {
	r := newRig(t)
	r.MaxConcurrent = 1
	q := New(r.Config)
	q.most = 20_000
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	running := r.add(q, "gate/1")
	order := Order{URLs: []string{"http://origin.example/2"}, Header: []string{"X: " + strings.Repeat("x", 1000)}}
	var orders int
	for ; orders < 20; orders++ {
		if _, err := q.Add(order, true, -1); errors.Is(err, ErrLarge) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if orders < 2 || orders > 5 {
		t.Fatalf("%d orders of 1 kB had room in %d bytes", orders, q.most/forOrders)
	}
	if err := q.Change(running, func(o *Order) { o.Header = order.Header }); !errors.Is(err, ErrLarge) {
		t.Errorf("an order was changed: %v", err)
	}
	if err := q.do(func() error { // downloads that are over take the rest
		for range 30 {
			q.stopped = append(q.stopped, &task{Download: Download{Order: order, Status: Failed, Message: strings.Repeat("m", 1000)}})
		}
		q.dirty = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.State); err != nil || info.Size() > int64(q.most) {
		t.Errorf("%v, %v", info, err)
	}
	q, _ = r.run()
	active, waiting, stopped, _, err := q.Lists()
	if err != nil || len(active)+len(waiting) != orders+1 || len(stopped) == 0 || len(stopped) == 30 {
		t.Errorf("%d active, %d waiting, %d stopped, %v", len(active), len(waiting), len(stopped), err)
	}
}
