package relay

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/lanes"
)

// usage is the file of one key: what its client has used.
type usage struct {
	Month string `json:"month"` // "2026-11", of UTC
	Bytes int64  `json:"bytes"` // of tunnels, both directions, in that month, with what is lent
}

// lease is how many bytes are noted as used at a time. After a crash the count is too high by that much at most, never too low.
const lease = 16 << 20

// usageFile returns where the usage of a key is kept: a file of its own, since it changes often.
func usageFile(state string, k KeyID) string {
	return filepath.Join(strings.TrimSuffix(state, ".json")+"-usage", string(k)+".json")
}

func monthOf(now time.Time) string { return now.UTC().Format("2006-01") }

// lend notes up to want bytes as used, so that a month has no more than limit (0 = any number), and returns how many. If they are less
// than least, it is none, and the error is a [ResetError] with CauseMonth. A clock that goes back begins no new month.
func lend(path, month string, want, least, limit int64) (lent int64, err error) {
	_, err = change(path, func(u *usage) error {
		if month > u.Month {
			*u = usage{Month: month}
		}
		if lent = want; limit > 0 {
			lent = min(lent, limit-u.Bytes)
		}
		if lent < least {
			return &ResetError{lanes.CauseMonth}
		}
		u.Bytes += lent
		return nil
	})
	if err != nil {
		lent = 0
	}
	return lent, err
}

// giveBack notes that bytes were lent in a month and not used.
func giveBack(path, month string, n int64) error {
	_, err := change(path, func(u *usage) error {
		if u.Month == month {
			u.Bytes = max(0, u.Bytes-n)
		}
		return nil
	})
	return err
}

// Used returns how many bytes the tunnels of a client have carried this month, both directions; up to 16 MiB that it was lent count as
// used while the server runs.
func Used(path string, k KeyID, now time.Time) (int64, error) {
	var u usage
	if err := load(usageFile(path, k), &u); err != nil || u.Month < monthOf(now) {
		return 0, err
	}
	return u.Bytes, nil
}

// forgetUsage removes the file of a key.
func forgetUsage(path string, k KeyID) { _ = os.Remove(usageFile(path, k)) }
