package allowance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// record is the file's content.
type record struct {
	Version int                         `json:"version"` // 2
	Day     string                      `json:"day"`     // "2026-11-23": the latest day that the clock has shown
	Spent   map[string]map[string]int64 `json:"spent"`   // bytes by account and day, leases included
}

const fileVersion = 2

// kept is the number of days before today that are recorded: enough for this month, whenever it begins, and the
// previous one.
const kept = 62

// monthRecord is the content of a file of version 1.
type monthRecord struct {
	Month string           `json:"month"` // "2026-11"
	Spent map[string]int64 `json:"spent"`
}

// day returns the day of a time, by the wall clock.
func day(t time.Time) string { return t.Format(time.DateOnly) }

// since returns the first day of the month that a day is in, if months begin on day first.
func since(today string, first int) string {
	t, err := time.Parse(time.DateOnly, today)
	if err != nil {
		return "" // damaged file: everything counts
	}
	year, month, _ := t.Date()
	begin := monthBegin(year, month, first)
	if begin.After(t) {
		begin = monthBegin(year, month-1, first)
	}
	return day(begin)
}

// monthBegin returns the day with the number first in a month, or the last day of the month if it is shorter.
func monthBegin(year int, month time.Month, first int) time.Time {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return last.AddDate(0, 0, min(max(first, 1), last.Day())-last.Day())
}

// sum returns what an account has spent since a day.
func (r record) sum(account, since string) (n int64) {
	for day, spent := range r.Spent[account] {
		if day >= since {
			n += spent
		}
	}
	return n
}

// change is what an account spent in addition to what the file says.
type change struct {
	account string
	day     string // "" = today
	n       int64  // bytes, may be negative
	first   int    // day on which its month begins

	used, leased int64 // amounts to subtract from the account's used and leased
}

// ledger is the file. A lock on a file next to it lets only one process at a time use it.
type ledger struct{ path string }

// add changes the spent bytes of accounts and returns the result. It begins a new day if the clock says so, but ignores
// a clock that goes back. A day's total does not go below 0.
func (l ledger) add(now time.Time, changes []change) (record, error) {
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
	if today := day(now); today > r.Day {
		changed = true
		r.Day = today
		oldest := day(now.AddDate(0, 0, -kept))
		for _, days := range r.Spent {
			maps.DeleteFunc(days, func(day string, _ int64) bool { return day < oldest })
		}
	}
	for _, c := range changes {
		if c.n == 0 {
			continue
		}
		days := r.Spent[c.account]
		if days == nil {
			days = map[string]int64{}
			r.Spent[c.account] = days
		}
		on := cmp.Or(c.day, r.Day)
		days[on] = max(0, days[on]+c.n)
		changed = true
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
	b, err := os.ReadFile(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return record{Version: fileVersion, Spent: map[string]map[string]int64{}}, nil
	}
	if err != nil {
		return record{}, err
	}
	var of struct{ Version int }
	r, err := record{}, json.Unmarshal(b, &of)
	switch {
	case err != nil:
	case of.Version == 1:
		var m monthRecord
		err = json.Unmarshal(b, &m)
		r = m.days()
	case of.Version == fileVersion:
		err = json.Unmarshal(b, &r)
	}
	if err != nil || r.Version != fileVersion || r.Spent == nil {
		return record{}, fmt.Errorf("%s is damaged or was written by another version; delete it to start again at 0",
			l.path)
	}
	for account, days := range r.Spent {
		for _, n := range days {
			if n < 0 {
				return record{}, fmt.Errorf("%s says that %s has spent %d bytes; delete it to start again at 0", l.path,
					account, n)
			}
		}
	}
	return r, nil
}

// days converts m to a record that books the spent bytes of the month on its first day.
func (m monthRecord) days() record {
	if m.Spent == nil {
		return record{}
	}
	r := record{Version: fileVersion, Day: m.Month + "-01", Spent: map[string]map[string]int64{}}
	for account, n := range m.Spent {
		r.Spent[account] = map[string]int64{r.Day: n}
	}
	return r
}

// write replaces the file, so that a crash leaves either the old or the new one.
func (l ledger) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return statefile.Replace(l.path, append(b, '\n'))
}
