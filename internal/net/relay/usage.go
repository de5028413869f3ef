package relay

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// usage is the content of a key's usage file: what its client has used.
type usage struct {
	Month string `json:"month"` // "2026-11", of UTC
	Bytes int64  `json:"bytes"` // bytes of tunnels, both directions, in that month, including lent bytes
}

// lease is how many bytes are recorded as used in one step. After a crash, the count is too high by at most this much,
// never too low.
const lease = 16 << 20

// usageFile returns the path of a key's usage file: it is a separate file because it changes often.
func usageFile(state string, k KeyID) string {
	return filepath.Join(strings.TrimSuffix(state, ".json")+"-usage", string(k)+".json")
}

func monthOf(now time.Time) string { return now.UTC().Format("2006-01") }

// lend records up to want bytes as used, so that a month has no more than limit (0 = no limit), and returns how many.
// If fewer than least are available, it lends none, and the error is a [ResetError] with CauseMonth. A clock that goes
// back does not start a new month.
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

// giveBack records that bytes were lent in a month and not used.
func giveBack(path, month string, n int64) error {
	_, err := change(path, func(u *usage) error {
		if u.Month == month {
			u.Bytes = max(0, u.Bytes-n)
		}
		return nil
	})
	return err
}

// Used returns how many bytes the tunnels of a client have carried this month, both directions; while the server runs,
// up to 16 MiB that were lent to it also count as used.
func Used(path string, k KeyID, now time.Time) (int64, error) {
	var u usage
	if err := load(usageFile(path, k), &u); err != nil || u.Month < monthOf(now) {
		return 0, err
	}
	return u.Bytes, nil
}

// forgetUsage removes the file of a key.
func forgetUsage(path string, k KeyID) { _ = os.Remove(usageFile(path, k)) }
