package engine

import "sync"

// Budget shares one amount of memory among transfers. A transfer may hold as many bytes for reordering as it was granted.
// Grants are even under pressure: a newcomer gets its share as soon as others have given back what they hold beyond
// theirs.
//
// Safe for concurrent use; nothing is done under its lock but arithmetic.
type Budget struct {
	mu      sync.Mutex
	total   int64
	most    int64 // that one transfer may have
	members []*Share
}

// minGrant is what every transfer gets, budget or not: enough to run on one link.
const minGrant = 128 << 10

// NewBudget returns a budget of total bytes, at most most of them for one transfer.
func NewBudget(total, most int64) *Budget { return &Budget{total: total, most: min(most, total)} }

// Share is one transfer's part of a Budget.
type Share struct {
	b       *Budget
	want    int64
	granted int64
	told    int64 // the window: what was granted as far as it is its share
	tell    func(n int64)
}

// Join adds a transfer that asks for n bytes; it has the least grant at once. tell is called with the window
// that this allows and with every change of it, with the budget's lock held: it must not block and not call back.
func (b *Budget) Join(n int64, tell func(n int64)) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{b: b, want: b.bound(n), granted: minGrant, tell: tell}
	b.members = append(b.members, s)
	b.level()
	return s
}

// bound returns what a transfer that asks for n bytes may have at most.
func (b *Budget) bound(n int64) int64 { return max(minGrant, min(n, b.most)) }

// Want asks for n bytes.
func (s *Share) Want(n int64) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.want = s.b.bound(n)
	s.b.level()
}

// Holds tells that the transfer holds or has promised no more than n bytes now: what it was granted beyond its share and
// beyond n goes to others. It reports whether there is still something to give back.
func (s *Share) Holds(n int64) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	fair := s.b.fair(s)
	if s.granted > fair && n < s.granted {
		s.granted = max(n, fair)
		s.b.level()
	}
	return s.granted > fair
}

// Leave gives everything back.
func (s *Share) Leave() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for i, m := range s.b.members {
		if m == s {
			s.b.members = append(s.b.members[:i], s.b.members[i+1:]...)
			break
		}
	}
	s.b.level()
}

// Granted returns the sum of all grants.
func (b *Budget) Granted() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		n += m.granted
	}
	return n
}

// Total returns the size of the budget.
func (b *Budget) Total() int64 { return b.total }

// fair returns the share of s if everybody had at most an even one.
func (b *Budget) fair(s *Share) int64 {
	left, n := b.total, int64(len(b.members))
	// Who wants less than an even share leaves the rest to the others.
	for _, m := range b.members {
		if even := b.total / int64(len(b.members)); m.want < even {
			left -= m.want
			n--
		}
	}
	return max(minGrant, min(s.want, left/max(n, 1)))
}

// level tells everybody its window: who is above its share shrinks, who is below grows into what is free.
func (b *Budget) level() {
	free := b.total
	for _, m := range b.members {
		free -= m.granted
	}
	for _, m := range b.members {
		fair := b.fair(m)
		if n := min(fair-m.granted, free); n > 0 {
			m.granted += n
			free -= n
		}
		if w := min(m.granted, fair); w != m.told {
			m.told = w
			m.tell(w)
		}
	}
}
