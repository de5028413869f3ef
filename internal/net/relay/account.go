package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// Limits bound what one client may use of a server; 0 = no limit.
type Limits struct {
	Flows int   `json:"flows,omitempty"` // tunnels open at once, in all its sessions
	Rate  int64 `json:"rate,omitempty"`  // bytes per second of all its tunnels, both directions together
	Month int64 `json:"month,omitempty"` // bytes of its tunnels in a calendar month (UTC), both directions together
}

// account records what a key uses. Bytes are reserved before they pass. It is safe for concurrent use.
type account struct {
	path string // usage file
	log  *slog.Logger
	rate *rate.Limiter

	mu      sync.Mutex
	limits  Limits
	flows   int
	month   string        // month for which left counts
	left    int64         // bytes that the file counts as used but were not used yet
	asking  chan struct{} // closed when ask has finished; nil = it is not running
	spent   string        // month in which nothing is left
	broken  bool          // the file could not be read or written; treated as spent
	bytes   int64         // since the start
	refused map[uint64]int64
}

func newAccount(path string, l Limits, log *slog.Logger) *account {
	a := &account{path: path, log: log, rate: rate.NewLimiter(rate.Inf, copyBuffer), refused: map[uint64]int64{}}
	a.set(l)
	return a
}

// set changes the limits, also for running flows.
func (a *account) set(l Limits) {
	if a.change(l) {
		a.close() // a lower limit applies at once
	}
}

// change sets the limits, and reports whether the monthly limit changed.
func (a *account) change(l Limits) (month bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l == a.limits {
		return false
	}
	month = l.Month != a.limits.Month
	a.limits, a.spent = l, ""
	if l.Rate == 0 {
		a.rate.SetLimit(rate.Inf)
		return month
	}
	a.rate.SetBurst(max(copyBuffer, int(min(l.Rate/20, 1<<30))))
	a.rate.SetLimit(rate.Limit(l.Rate))
	return month
}

// enter counts a flow. The error is a [ResetError]; without one, leave must follow.
func (a *account) enter(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.spent == monthOf(now):
		return a.refuse(lanes.CauseMonth)
	case a.limits.Flows > 0 && a.flows >= a.limits.Flows:
		return a.refuse(lanes.CauseFlows)
	}
	a.flows++
	return nil
}

func (a *account) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flows--
}

// refuse counts a refusal. The lock is held.
func (a *account) refuse(cause uint64) error {
	a.refused[cause]++
	return &ResetError{cause}
}

// reject counts a refusal for a reason outside the account, and returns the cause.
func (a *account) reject(cause uint64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.refuse(cause)
	return cause
}

// reserve waits until n bytes may pass, at most copyBuffer. A [ResetError] means that they may not this month.
func (a *account) reserve(ctx context.Context, n int) error {
	if err := a.rate.WaitN(ctx, n); err != nil {
		return err
	}
	return a.spend(ctx, int64(n))
}

// spend subtracts bytes from the monthly amount.
func (a *account) spend(ctx context.Context, n int64) error {
	for {
		month := monthOf(time.Now())
		a.mu.Lock()
		if a.month != month { // bytes lent last month count for last month
			a.month, a.left = month, 0
		}
		if a.left >= n {
			a.left -= n
			a.bytes += n
			a.mu.Unlock()
			return nil
		}
		if a.spent == month {
			err := a.refuse(lanes.CauseMonth)
			a.mu.Unlock()
			return err
		}
		others := a.asking
		if others == nil {
			a.asking = make(chan struct{})
		}
		missing, limit := n-a.left, a.limits.Month
		a.mu.Unlock()
		if others == nil {
			a.ask(month, missing, limit)
			continue
		}
		select {
		case <-others:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask requests a loan of bytes, or records that none are left.
func (a *account) ask(month string, least, limit int64) {
	lent, err := lend(a.path, month, lease, least, limit)
	refusal, isSpent := errors.AsType[*ResetError](err)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil && a.month == month:
		a.left += lent
	case err != nil && (isSpent && limit == a.limits.Month || !isSpent && limit > 0):
		a.spent, a.broken = month, !isSpent
	case err != nil && !isSpent && a.month == month: // only the count is lost
		a.left += lease
	}
	close(a.asking)
	a.asking = nil
	switch {
	case isSpent:
		a.log.Info("a client is refused", "reason", refusal.Error())
	case err != nil:
		a.log.Error("what a client uses cannot be noted; it is refused if it has a monthly limit", "error", err)
	}
}

// retry allows a new attempt on a file that could not be read or written.
func (a *account) retry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		a.spent, a.broken = "", false
	}
}

// close gives back bytes that were lent and not used.
func (a *account) close() {
	a.mu.Lock()
	month, left := a.month, a.left
	a.left = 0
	a.mu.Unlock()
	if left == 0 {
		return
	}
	if err := giveBack(a.path, month, left); err != nil {
		a.log.Warn("bytes that were reserved and not used count as used", "error", err)
	}
}
