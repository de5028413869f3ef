package allowance

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	lease    = 1 << 20   // bytes noted as spent at a time
	ahead    = lease / 2 // left of a lease when the next one is asked for
	overhead = 106       // percent of the bytes that are read and written: headers and acknowledgements
	retry    = time.Minute

	unbounded = math.MaxInt64 // as a limit: there was one once
)

// ErrSpent says that a link has nothing left this month.
var ErrSpent = errors.New("the link's data for this month is spent")

// Book knows what every account has left. Make it with Open.
type Book struct {
	file    ledger
	log     *slog.Logger
	now     func() time.Time
	changed func() // an account has nothing left, or something again
	kick    chan struct{}
	done    chan struct{}
	ended   chan struct{}

	mu       sync.Mutex
	accounts map[string]*account
	month    string
}

// account is one line of the book.
type account struct {
	limit  int64         // bytes in a month
	others int64         // spent by others and in earlier leases that were used up
	leased int64         // noted as spent for this process, beyond others
	used   int64         // of these
	broken bool          // the file cannot be written: nothing may be spent
	empty  bool          // as changed was told; true until the file has told otherwise
	more   chan struct{} // closed when there may be more to spend, or never will be
}

// left is what may be spent at once.
func (a *account) left() int64 { return min(a.leased, a.limit-a.others) - a.used }

// low reports whether another lease is to be had and due.
func (a *account) low() bool {
	return a.leased-a.used < ahead && a.others+a.leased < a.limit && a.limit != unbounded
}

// spent reports whether there is nothing left, nor can be before the next month.
func (a *account) spent() bool { return a.broken || a.others+a.used >= a.limit }

// File returns where the counts are: in $STATE_DIRECTORY, which systemd gives to services, in $XDG_STATE_HOME/tributary, or
// below home.
func File(getenv func(string) string) string {
	const name = "allowance.json"
	if dir := getenv("STATE_DIRECTORY"); filepath.IsAbs(dir) {
		return filepath.Join(dir, name)
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tributary", name)
	}
	home := getenv("HOME")
	if home == "" {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "tributary", name)
}

// Open returns the book kept in a file. changed is called, without waiting for it, when an account has nothing left or has
// something again. Close gives back what was leased.
func Open(path string, now func() time.Time, log *slog.Logger, changed func()) *Book {
	b := &Book{
		file: ledger{path}, log: log, now: now, changed: changed, accounts: map[string]*account{},
		kick: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
	}
	go b.keep()
	return b
}

// Set makes limits, in bytes a month, those of the accounts; an account without one is not bounded any more.
func (b *Book) Set(limits map[string]int64) {
	b.mu.Lock()
	for name, a := range b.accounts {
		if limits[name] == 0 {
			a.limit = unbounded
		}
	}
	for name, n := range limits {
		a := b.accounts[name]
		if a == nil {
			a = &account{empty: true, more: make(chan struct{})}
			b.accounts[name] = a
		}
		a.limit = n
	}
	b.mu.Unlock()
	b.hurry()
}

// hurry has the keeper look at the accounts.
func (b *Book) hurry() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// Left returns what an account may still spend this month, and whether it is bounded at all.
func (b *Book) Left(name string) (n int64, bounded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil || a.limit == unbounded {
		return 0, false
	}
	if a.empty {
		return 0, true
	}
	return max(0, a.limit-a.others-a.used), true
}

// Close gives back what was leased and not used.
func (b *Book) Close() {
	close(b.done)
	<-b.ended
}

// keep notes leases in the file, until Close.
func (b *Book) keep() {
	defer close(b.ended)
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		select {
		case <-b.kick:
			b.renew()
		case <-tick.C: // the month may be another, or the disk not full any more
			b.renew()
		case <-b.done:
			b.giveBack()
			return
		}
	}
}

// renew leases for the accounts that have little left of theirs.
func (b *Book) renew() {
	b.mu.Lock()
	now := b.now()
	change := map[string]int64{}
	for name, a := range b.accounts {
		change[name] = 0
		if over := a.used - a.leased; over > 0 { // counted a little beyond the lease
			change[name] = over
		}
		if a.low() {
			change[name] += min(lease, a.limit-a.others-a.leased)
		}
	}
	b.mu.Unlock()
	if len(change) == 0 {
		return
	}
	r, err := b.file.add(now, change)
	if err != nil {
		b.log.Error("links with a monthly limit are not used", "error", err)
	}
	b.note(r, err, change)
}

// note takes in what the file holds now.
func (b *Book) note(r record, err error, change map[string]int64) {
	b.mu.Lock()
	told := false
	for name, n := range change {
		a := b.accounts[name]
		a.broken = err != nil
		if err == nil {
			if r.Month != b.month { // what was leased in the old one is gone with it
				a.leased, a.used = 0, 0
			}
			a.leased += n
			a.others = max(0, r.Spent[name]-a.leased)
		}
		if e := a.spent(); e != a.empty {
			a.empty, told = e, true
		}
		close(a.more)
		a.more = make(chan struct{})
	}
	if err == nil {
		b.month = r.Month
	}
	b.mu.Unlock()
	if told {
		b.changed()
	}
}

// giveBack takes what was not used out of the file again.
func (b *Book) giveBack() {
	b.mu.Lock()
	now, change := b.now(), map[string]int64{}
	for name, a := range b.accounts {
		if n := a.used - a.leased; n != 0 && !a.broken {
			change[name] = n
		}
	}
	same := b.month == month(now)
	b.mu.Unlock()
	if len(change) == 0 || !same { // what was leased in another month is forgotten with it
		return
	}
	if _, err := b.file.add(now, change); err != nil {
		b.log.Warn("data that was reserved and not used counts as used", "error", err)
	}
}

// Wrap returns a connection that is counted on an account, and ends with ErrSpent when that has nothing left. A connection
// of an account without a limit is returned as it is.
func (b *Book) Wrap(c net.Conn, name string) net.Conn {
	b.mu.Lock()
	a := b.accounts[name]
	b.mu.Unlock()
	tcp, ok := c.(tcpConn)
	if a == nil || !ok {
		return c
	}
	return &conn{tcpConn: tcp, book: b, account: a, closed: make(chan struct{})}
}

// wait returns when something may be spent, and how much.
func (b *Book) wait(a *account, closed <-chan struct{}) (int64, error) {
	for {
		b.mu.Lock()
		n, spent, free, more := a.left(), a.spent(), a.limit == unbounded, a.more
		low := a.low()
		b.mu.Unlock()
		if low {
			b.hurry()
		}
		switch {
		case free:
			return largest, nil
		case spent:
			return 0, ErrSpent
		case n > 0:
			return n, nil
		}
		select {
		case <-more:
		case <-closed:
			return 0, net.ErrClosed
		case <-b.done:
			return 0, ErrSpent
		}
	}
}

// count notes what was read or written.
func (b *Book) count(a *account, n int) {
	if n <= 0 {
		return
	}
	b.mu.Lock()
	a.used += (int64(n)*overhead + 99) / 100
	now := a.spent() && !a.empty
	b.mu.Unlock()
	if now {
		b.hurry()
	}
}
