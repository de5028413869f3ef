package engine

import (
	"cmp"
	"slices"
	"sync"
)

// Budget divides memory among transfers. A transfer may hold as many bytes for reordering as it was granted. Under pressure,
// every transfer first gets what it needs or an even share; the rest is divided evenly among those that want more. So a slow
// client, which needs little, leaves room for a fast one. A new transfer gets its share as soon as others have returned their
// excess.
//
// Safe for concurrent use; the lock is held only for arithmetic.
type Budget struct {
	mu      sync.Mutex
	total   int64
	most    int64 // maximum for one transfer
	members []*Share
}

// minGrant is granted to every transfer, budget or not: enough to run on one link.
const minGrant = 128 << 10

// perTransfer is the memory of a transfer over two links in addition to its blocks, in bytes: the stacks of some seven goroutines,
// buffers of four connections (one has the reserve), and garbage not yet collected. Measured with 100 slow clients.
const perTransfer = 368 << 10

// perSecureTransfer is the same for https: TLS keeps records of up to 16 KiB in buffers of several times that size, and HTTP/2
// frames and tables.
const perSecureTransfer = 576 << 10

// NewBudget returns a budget of total bytes, at most most of them for one transfer.
func NewBudget(total, most int64) *Budget { return &Budget{total: total, most: min(most, total)} }

// Share is one transfer's part of a Budget.
type Share struct {
	b       *Budget
	cost    int64 // memory of the transfer in addition to its grant
	want    int64
	need    int64 // at most want
	granted int64
	fair    int64 // share
	told    int64 // the window: the grant, up to the transfer's share
	tell    func(n int64)
}

// Join adds a transfer that asks for n bytes and needs them, and takes cost bytes in addition to its grant. It gets the minimum grant
// immediately. tell is called with the resulting window and with every change of it, while the budget's lock is held: it must not
// block and not call back.
func (b *Budget) Join(n, cost int64, tell func(n int64)) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{b: b, cost: cost, want: b.bound(n), need: b.bound(n), granted: minGrant, tell: tell}
	b.members = append(b.members, s)
	b.level()
	return s
}

// bound returns the largest grant of a transfer that asks for n bytes.
func (b *Budget) bound(n int64) int64 { return max(minGrant, min(n, b.most)) }

// Need reports that n bytes are enough to continue at the present speed; a larger n than Join asked for means all of that.
func (s *Share) Need(n int64) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.need = min(s.b.bound(n), s.want)
	s.b.level()
}

// Holds reports that the transfer holds or has promised at most n bytes now, so that the part of its grant that exceeds both
// its share and n can go to others. It returns whether there is still something to return.
func (s *Share) Holds(n int64) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.granted > s.fair && n < s.granted {
		s.granted = max(n, s.fair)
		s.b.level()
	}
	return s.granted > s.fair
}

// Leave returns the whole share.
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

// room returns the bytes available for grants.
func (b *Budget) room() int64 {
	room := b.total
	for _, m := range b.members {
		room -= m.cost
	}
	return max(0, room)
}

// divide sets the fair share of every member.
func (b *Budget) divide() {
	needs, wants := make([]int64, len(b.members)), make([]int64, len(b.members))
	for i, m := range b.members {
		needs[i], wants[i] = m.need, m.want-m.need
	}
	total := b.room()
	fill(wants, total-fill(needs, total))
	for i, m := range b.members {
		m.fair = max(minGrant, needs[i]+wants[i])
	}
}

// fill lowers each of the claims to an even share of total, where those that claim less leave the rest to the others (max-min
// fairness), and returns their sum.
func fill(claims []int64, total int64) (sum int64) {
	order := make([]int, len(claims))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(claims[i], claims[j]) })
	for n, i := range order {
		claims[i] = min(claims[i], (total-sum)/int64(len(order)-n))
		sum += claims[i]
	}
	return sum
}

// level gives every transfer its window: those above their share shrink, those below grow into the free memory.
func (b *Budget) level() {
	b.divide()
	free := b.room()
	for _, m := range b.members {
		free -= m.granted
	}
	for _, m := range b.members {
		if n := min(m.fair-m.granted, free); n > 0 {
			m.granted += n
			free -= n
		}
		if w := min(m.granted, m.fair); w != m.told {
			m.told = w
			m.tell(w)
		}
	}
}
