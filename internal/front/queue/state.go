package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// stateFormat is the version of the file.
const stateFormat = 1

// maxState is the maximum number of bytes read from the file.
const maxState = 256 << 20

// lockTime is how long another process may take to release the list.
const lockTime = 10 * time.Second

// state is the content of the file.
type state struct {
	Format  int        `json:"format"`
	Waiting []Download `json:"waiting"` // preceded by the active ones
	Stopped []Download `json:"stopped"`
}

// load reads the list and locks it for this process until unlock.
func (q *Queue) load(ctx context.Context) (unlock func(), err error) {
	if err := statefile.Own(q.State); err != nil {
		return nil, fmt.Errorf("the list of downloads: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockTime, errors.New("another proxy of yours runs these downloads"))
	defer cancel()
	if unlock, err = statefile.Lock(ctx, q.State); err != nil {
		return nil, fmt.Errorf("the list of downloads: %w", err)
	}
	var s state
	text, err := statefile.Read(q.State, maxState)
	if err == nil {
		q.size = len(text)
		if err = json.Unmarshal(text, &s); err == nil && s.Format != stateFormat {
			err = fmt.Errorf("its format is %d, not %d", s.Format, stateFormat)
		}
		if err != nil {
			aside := q.State + ".unreadable"
			q.Log.Error("cannot read the list of downloads; starting with an empty one", "error", err, "old", aside)
			err, s = os.Rename(q.State, aside), state{}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		unlock()
		return nil, fmt.Errorf("the list of downloads: %w", err)
	}
	for _, d := range s.Waiting {
		t := &task{Download: d}
		// the process was killed before it recorded the completion
		if size, ok := q.Partial.Completed(t.File, t.URLs); ok {
			t.Status, t.Size, t.Have = Complete, size, size
			q.stopped, q.dirty = append(q.stopped, t), true
			continue
		}
		q.waiting = append(q.waiting, t)
	}
	for _, d := range s.Stopped {
		q.stopped = append(q.stopped, &task{Download: d})
	}
	return unlock, nil
}

// save writes the list to the disk if it changed.
func (q *Queue) save() error {
	if !q.dirty {
		return nil
	}
	s := state{Format: stateFormat}
	for _, t := range q.active {
		d := t.now()
		d.Status = Waiting
		if t.want == Paused {
			d.Status = Paused
		}
		if t.want != Removed {
			s.Waiting = append(s.Waiting, d)
		}
	}
	for _, t := range q.waiting {
		s.Waiting = append(s.Waiting, t.Download)
	}
	for _, t := range q.stopped {
		s.Stopped = append(s.Stopped, t.Download)
	}
	text, err := json.Marshal(s)
	for err == nil && len(text) > q.most && len(s.Stopped) > 0 { // forget the oldest
		s.Stopped = s.Stopped[(len(s.Stopped)+1)/2:]
		text, err = json.Marshal(s)
	}
	if err == nil {
		err = statefile.Replace(q.State, text)
	}
	if err != nil {
		return fmt.Errorf("save the list of downloads: %w", err)
	}
	q.dirty, q.size = false, len(text)
	return nil
}

// room reports whether the file has room for an order.
func (q *Queue) room(o Order) bool {
	text, err := json.Marshal(o)
	return err == nil && q.size+len(text) <= q.most/forOrders
}
