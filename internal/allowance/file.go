package allowance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/statefile"
)

// record is the file's content.
type record struct {
	Version int              `json:"version"` // 1
	Month   string           `json:"month"`   // "2026-11"
	Spent   map[string]int64 `json:"spent"`   // bytes by account, leases included
}

const fileVersion = 1

// month names the month of a time, by the clock on the wall.
func month(t time.Time) string { return t.Format("2006-01") }

// ledger is the file. It is one process's at a time, by a lock on a file beside it.
type ledger struct{ path string }

// add changes the spent bytes of accounts and returns the result. It begins a new month if the clock says so; a clock that goes
// back does not. The changes of an account that would make it negative make it 0.
func (l ledger) add(now time.Time, change map[string]int64) (record, error) {
	fail := func(err error) (record, error) { return record{}, fmt.Errorf("the count of mobile data: %w", err) }
	unlock, err := statefile.Lock(context.Background(), l.path)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	r, err := l.read()
	if err != nil {
		return fail(err)
	}
	changed := false
	if m := month(now); m > r.Month {
		changed = true
		r = record{Version: fileVersion, Month: m, Spent: map[string]int64{}}
	}
	for account, n := range change {
		if n != 0 {
			r.Spent[account] = max(0, r.Spent[account]+n)
			changed = true
		}
	}
	if !changed {
		return r, nil
	}
	if err := l.write(r); err != nil {
		return fail(err)
	}
	return r, nil
}

// read returns the content of the file; a missing file counts as empty.
func (l ledger) read() (record, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	defer f.Close()
	var r record
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&r); err != nil || r.Version != fileVersion || r.Spent == nil {
		return record{}, fmt.Errorf("%s is damaged or of another version; remove it to begin anew at 0", l.path)
	}
	for account, n := range r.Spent {
		if n < 0 {
			return record{}, fmt.Errorf("%s says that %s has spent %d bytes; remove it to begin anew at 0", l.path, account, n)
		}
	}
	return r, nil
}

// write replaces the file, so that a crash leaves the old or the new one.
func (l ledger) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return statefile.Replace(l.path, append(b, '\n'))
}
