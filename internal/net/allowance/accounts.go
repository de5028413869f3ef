package allowance

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/net/conn"
)

const (
	lease      = 1 << 20  // bytes of a lease, far from the limit
	leastLease = 64 << 10 // the same, near the limit
	overhead   = 106      // percentage charged for the bytes read and written: includes headers and acknowledgements
	retry      = time.Minute

	unbounded = math.MaxInt64 // limit of an account that has no limit, or no longer has one
)

// Limit bounds an account. Zero bytes mean no limit of that kind.
type Limit struct {
	Month int64 // bytes in a month
	Day   int64 // bytes in a day
	First int   // day on which the month begins, 1 to 31, on the last day of shorter months; 0 = 1
}

// bounded reports whether there is a limit.
func (l Limit) bounded() bool { return l.Month < unbounded || l.Day < unbounded }

// Balance is what an account has left.
type Balance struct {
	Limit     Limit  // limit as set
	Since     string // first day of the current month, "2026-11-15"; "" = the file has not been read yet
	MonthLeft int64  // bytes; 0 without a limit
	DayLeft   int64  // bytes; 0 without a limit
	MonthUsed int64  // bytes
	DayUsed   int64  // bytes
}

// cost returns how many bytes are charged for n bytes.
func cost(n int64) int64 { return (n*overhead + 99) / 100 }

// ErrSpent means that a link has nothing left this month, or today.
var ErrSpent = errors.New("the link has reached its data limit")

// Accounts track the remaining allowance of every account. Use Open to create one.
type Accounts struct {
	file    ledger
	log     *slog.Logger
	now     func() time.Time
	changed func() // called when an account has nothing left, or has something again
	kick    chan struct{}
	done    chan struct{}
	ended   chan struct{}

	mu       sync.Mutex
	accounts map[string]*account
	day      string // day of the leases, as in the file; "" = the file has not been read yet
}

// account is the state of one account.
type account struct {
	limit  Limit         // unbounded instead of 0
	since  string        // first day of the current month; "" = the file has not been read yet
	others int64         // bytes spent this month by other processes and in earlier leases that were used up
	today  int64         // part of others that was spent today
	leased int64         // bytes recorded as spent for this process today, in addition to others
	used   int64         // part of leased that was used
	broken bool          // the file cannot be written: nothing may be spent
	empty  bool          // as last reported to changed; true until the file has been read
	more   chan struct{} // closed when there may be more to spend, or never will be

	conns   map[*counted]struct{} // the open connections
	windows int64                 // lower bound on the sum of their receive buffers
	near    bool                  // the receive buffers are fixed and reserved
	held    int64                 // reserved for data that connections may still receive, while near
	stopped bool                  // nothing is left except the reservations
}

// bound returns how many bytes this process may still use in all: what other processes have left of the month, and of
// the day.
func (a *account) bound() int64 { return min(a.limit.Month-a.others, a.limit.Day-a.today) }

// rest returns the unused part of the limits.
func (a *account) rest() int64 { return a.bound() - a.used }

// free returns the bytes that are neither used nor reserved.
func (a *account) free() int64 { return a.rest() - a.held }

// left returns how much may be spent at once.
func (a *account) left() int64 { return min(a.leased, a.bound()) - a.used - a.held }

// lease returns the size of the next lease in bytes.
func (a *account) lease() int64 { return max(leastLease, min(lease, a.rest()/16)) }

// low reports whether another lease is due and possible.
func (a *account) low() bool {
	return a.leased-a.used-a.held < a.lease()/2 && a.leased < a.bound() && a.limit.bounded()
}

// due returns the amount to record as spent: the excess over the lease, and the next lease if one is due.
func (a *account) due() int64 {
	if !a.low() {
		return max(0, a.used-a.leased)
	}
	beyond := max(0, a.used+a.held-a.leased)
	return max(a.used-a.leased, min(beyond+a.lease(), a.bound()-a.leased))
}

// spent reports whether nothing more may be sent or received.
func (a *account) spent() bool { return a.broken || a.stopped }

// settle stops the account when nothing is free, and resumes it when enough is: closing connections give back their
// reservations, and a link should not come and go with each of them.
func (a *account) settle() {
	free := a.free()
	a.stopped = free <= 0 || a.stopped && free < min(lease, a.limit.Month/2, a.limit.Day/2)
}

// Open returns the Accounts kept in a file. changed is called, without waiting for it, when an account has nothing left
// or has something again. Close gives back unused leases.
func Open(path string, now func() time.Time, log *slog.Logger, changed func()) *Accounts {
	b := &Accounts{
		file:     ledger{path},
		log:      log,
		now:      now,
		changed:  changed,
		accounts: map[string]*account{},
		kick:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	go b.keep()
	return b
}

// Set replaces the limits of all accounts; an account without an entry is no longer limited.
func (b *Accounts) Set(limits map[string]Limit) {
	b.mu.Lock()
	for name, a := range b.accounts {
		if _, ok := limits[name]; !ok {
			a.limit = Limit{Month: unbounded, Day: unbounded}
			a.settle()
		}
	}
	for name, l := range limits {
		a := b.accounts[name]
		if a == nil {
			a = &account{empty: true, more: make(chan struct{}), conns: map[*counted]struct{}{}}
			b.accounts[name] = a
		}
		a.limit = Limit{Month: cmp.Or(l.Month, unbounded), Day: cmp.Or(l.Day, unbounded), First: l.First}
		a.settle()
	}
	b.mu.Unlock()
	b.hurry()
}

// hurry makes the keeper check the accounts.
func (b *Accounts) hurry() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// Left returns how many bytes an account may still spend now, and whether it has a limit at all.
func (b *Accounts) Left(name string) (n int64, bounded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil || !a.limit.bounded() {
		return 0, false
	}
	if a.empty {
		return 0, true
	}
	return max(0, a.rest()), true
}

// Balances returns what is left in the accounts with a limit.
func (b *Accounts) Balances() map[string]Balance {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]Balance{}
	for name, a := range b.accounts {
		if !a.limit.bounded() {
			continue
		}
		s := Balance{Limit: a.limit, Since: a.since, MonthUsed: a.others + a.used, DayUsed: a.today + a.used}
		if s.Limit.Month == unbounded {
			s.Limit.Month = 0
		} else if !a.broken {
			s.MonthLeft = max(0, a.limit.Month-a.others-a.used)
		}
		if s.Limit.Day == unbounded {
			s.Limit.Day = 0
		} else if !a.broken {
			s.DayLeft = max(0, a.limit.Day-a.today-a.used)
		}
		all[name] = s
	}
	return all
}

// Close gives back the unused part of the leases.
func (b *Accounts) Close() {
	close(b.done)
	<-b.ended
}

// keep records leases in the file, until Close.
func (b *Accounts) keep() {
	defer close(b.ended)
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		select {
		case <-b.kick:
			b.renew()
		case <-tick.C: // there may be a new month, or space on the disk again
			b.renew()
		case <-b.done:
			b.giveBack()
			return
		}
	}
}

// renew takes new leases for the accounts whose leases have little left. It first settles leases of a day that is over.
func (b *Accounts) renew() {
	for b.settled() {
	}
}

// settled records what is due. It returns true if it only settled leases of an earlier day, so that there is more to
// do.
func (b *Accounts) settled() bool {
	b.mu.Lock()
	now := b.now()
	over := b.day != "" && day(now) > b.day
	var changes []change
	for name, a := range b.accounts {
		c := change{account: name, first: a.limit.First}
		if over {
			c.day, c.n, c.used, c.leased = b.day, a.used-a.leased, a.used, a.leased
		} else {
			c.n, c.leased = a.due(), -a.due()
		}
		changes = append(changes, c)
	}
	b.mu.Unlock()
	if len(changes) == 0 {
		return false
	}
	r, err := b.file.add(now, changes)
	if err != nil {
		b.log.Error("cannot count data: links with a data limit are not used", "error", err)
	}
	b.note(r, err, changes)
	return over && err == nil
}

// note adopts the current content of the file.
func (b *Accounts) note(r record, err error, changes []change) {
	b.mu.Lock()
	told := false
	for _, c := range changes {
		a := b.accounts[c.account]
		a.broken = err != nil
		if err == nil {
			a.leased -= c.leased
			a.used -= c.used
			a.since = since(r.Day, c.first)
			a.others = max(0, r.sum(c.account, a.since)-a.leased)
			a.today = max(0, r.Spent[c.account][r.Day]-a.leased)
			a.look()
			a.settle()
		}
		if e := a.spent(); e != a.empty {
			a.empty, told = e, true
		}
		close(a.more)
		a.more = make(chan struct{})
	}
	if err == nil {
		b.day = r.Day
	}
	b.mu.Unlock()
	if told {
		b.changed()
	}
}

// giveBack removes the unused part of the leases from the file. Bytes that open connections received or may still
// receive count as used.
func (b *Accounts) giveBack() {
	b.mu.Lock()
	now := b.now()
	var changes []change
	for name, a := range b.accounts {
		for c := range a.conns {
			a.used += cost(c.owed())
		}
		if n := a.used - a.leased; n != 0 && !a.broken {
			changes = append(changes, change{account: name, day: b.day, n: n, first: a.limit.First})
		}
	}
	b.mu.Unlock()
	if len(changes) == 0 {
		return
	}
	if _, err := b.file.add(now, changes); err != nil {
		b.log.Warn("cannot store the count: reserved data that was not used counts as used", "error", err)
	}
}

// Count counts a connection on an account. Its reads and writes fail with ErrSpent when the account has nothing left.
// Near the limit, Count reserves the bytes that the connection may receive. It does nothing if the account never had a
// limit. A connection that cannot be counted is an error, and closed.
func (b *Accounts) Count(c *conn.Conn, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		return nil
	}
	if !c.HasSocket() {
		c.Close()
		return fmt.Errorf("connections of this kind (%T) cannot be counted: a link with a data limit does not carry them",
			c.Conn)
	}
	on := &counted{conn: c, accounts: b, account: a, closed: make(chan struct{})}
	c.Through(on)
	c.BeforeClose(on.leave)
	a.join(on)
	b.tell(a)
	return nil
}

// Buffer returns the SO_RCVBUF to set on a new connection of an account before it connects; 0 leaves the size to the
// kernel.
func (b *Accounts) Buffer(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.accounts[name]; a != nil && a.near {
		return a.buffer()
	}
	return 0
}

// tell makes the keeper report whether an account has something left, if that has changed. mu must be held.
func (b *Accounts) tell(a *account) {
	a.settle()
	if a.spent() != a.empty {
		b.hurry()
	}
}

// wait waits until c may send or receive, and returns how many bytes it may read or write at once.
func (b *Accounts) wait(c *counted) (int64, error) {
	a := c.account
	for {
		b.mu.Lock()
		n, spent, free, more := min(a.left(), c.part()), a.spent(), !a.limit.bounded(), a.more
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
		case <-c.closed:
			return 0, net.ErrClosed
		case <-b.done:
			return 0, ErrSpent
		}
	}
}

// count records the bytes that a connection has read and written.
func (b *Accounts) count(c *counted, read, written int) {
	if read <= 0 && written <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.read += int64(read)
	c.asked = c.asked || written > 0
	c.account.used += cost(int64(read + written))
	b.tell(c.account)
}

// leave ends the counting of a connection that is about to be closed.
func (b *Accounts) leave(c *counted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := c.account
	a.used += cost(c.owed())
	a.held -= c.hold
	c.hold = 0
	delete(a.conns, c)
	b.tell(a)
}
