package engine

import (
	"cmp"
	"slices"
	"sync"
)

// Budget divides memory among transfers. A transfer may hold as many bytes for reordering as it was granted. Under
// pressure, every transfer first gets what it needs or an even share; the rest is divided evenly among those that want
// more. So a slow client, which needs little, leaves room for a fast one. A new transfer gets its share as soon as
// others have returned their excess.
//
// What a transfer holds cannot be taken back, and many may begin at the same time. So a transfer whose client has taken
// little so far gets less: an even share, divided among all such newcomers, or as much as its client has taken.
//
// Safe for concurrent use; the lock is held only for arithmetic.
type Budget struct {
	mu        sync.Mutex
	total     int64
	most      int64 // maximum for one transfer
	members   []*Share
	peak      int   // most members at a time since memory was last returned to the system
	lingering int64 // memory of transfers that have ended since then, which the garbage collector may still keep
}

// minGrant is granted to every transfer, budget or not: enough to run on one link.
const minGrant = 128 << 10

// scarceGrant is the even share below which a new transfer begins with one link: four times the least that is worth
// several.
const scarceGrant = 8 * minGrant

// lingers is how many transfers must end until the memory of one that ended before them counts as returned, but for a
// third.
const lingers = 32

// ofProcess is the part of the configured memory that transfers do not get: the program and its heap take as much
// beyond the 25 MB in addition to that memory which they may take.
const ofProcess = 8 << 20

// few is how many transfers leave so little behind that it does not count.
const few = 8

// perTransfer is the memory of a transfer over two links in addition to its blocks, in bytes: the stacks of some seven
// goroutines, buffers of four connections (one has the reserve), and garbage not yet collected. Measured with 100 slow
// clients.
const perTransfer = 368 << 10

// connsOfTransfer is how many connections that covers. Where the origin limits each, a transfer has more.
const connsOfTransfer = 4

// perSecureTransfer is the same for https: TLS keeps records of up to 16 KiB in buffers of several times that size, and
// HTTP/2 frames and tables.
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
	took    int64 // bytes that its client had taken when Took last looked at the share. Only Took changes it
	taken   int64 // and now. Owned by the caller of Took
	tell    func(n int64)
}

// Join adds a transfer that asks for n bytes and needs them, and takes cost bytes in addition to its grant. It gets the
// minimum grant immediately. tell is called with the resulting window and with every change of it, while the budget's
// lock is held: it must not block and not call back.
func (b *Budget) Join(n, cost int64, tell func(n int64)) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{
		b:       b,
		cost:    cost,
		want:    b.bound(n),
		need:    b.bound(n),
		granted: minGrant,
		tell:    tell,
	}
	b.members = append(b.members, s)
	b.peak, b.lingering = max(b.peak, len(b.members)), max(0, b.lingering-cost)
	b.level()
	return s
}

// Costs reports that the transfer takes n bytes in addition to its grant from now on.
func (s *Share) Costs(n int64) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.cost != n {
		s.cost = n
		s.b.level()
	}
}

// bound returns the largest grant of a transfer that asks for n bytes.
func (b *Budget) bound(n int64) int64 { return max(minGrant, min(n, b.most)) }

// Need reports that n bytes are enough to continue at the present speed; a larger n than Join asked for means all of
// that.
func (s *Share) Need(n int64) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.need = min(s.b.bound(n), s.want)
	s.b.level()
}

// Took reports that the client has taken n more bytes. One goroutine may call it.
func (s *Share) Took(n int64) {
	if s.taken += n; s.taken < max(minGrant/2, 2*s.took) {
		return
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	newcomer := s.newcomer()
	if s.took = s.taken; newcomer {
		s.b.level()
	}
}

// Holds reports that the transfer holds or has promised at most n bytes now, so that the part of its grant that exceeds
// both its share and n can go to others. It returns whether there is still something to return.
func (s *Share) Holds(n int64) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.granted > s.fair && n < s.granted {
		s.granted = max(n, s.fair)
		s.b.level()
	}
	return s.granted > s.fair
}

// Leave returns the whole share. It reports whether it is time to return memory to the system: most transfers have
// ended, and they had much of it.
func (s *Share) Leave() (relieved bool) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for i, m := range s.b.members {
		if m == s {
			s.b.members = append(s.b.members[:i], s.b.members[i+1:]...)
			s.b.lingering += s.cost
			s.b.lingering -= s.b.lingering / lingers
			break
		}
	}
	if n := len(s.b.members); n <= max(few, s.b.peak/4) {
		relieved = s.b.lingering >= s.b.total/4
		s.b.peak, s.b.lingering = n, 0
	}
	s.b.level()
	return relieved
}

// Scarce reports whether one more transfer, which takes cost bytes in addition to its grant, should begin with one
// link: if a few more come, nobody has enough for several.
func (b *Budget) Scarce(cost int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.room()-cost)/int64(len(b.members)+1) < scarceGrant
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

// room returns the bytes available for grants.
func (b *Budget) room() int64 {
	room := b.total - b.lingering
	for _, m := range b.members {
		room -= m.cost
	}
	return max(0, room)
}

// divide sets the fair share of every member.
func (b *Budget) divide() {
	needs, wants := make([]int64, len(b.members)), make([]int64, len(b.members))
	total, n, newcomers := b.room(), int64(len(b.members)), int64(0)
	for _, m := range b.members {
		if m.newcomer() {
			newcomers++
		}
	}
	for i, m := range b.members {
		most := m.want
		if m.newcomer() {
			most = min(most, max(m.took, total/n/newcomers))
		}
		needs[i] = min(m.need, most)
		wants[i] = most - needs[i]
	}
	fill(wants, total-fill(needs, total))
	for i, m := range b.members {
		m.fair = max(minGrant, needs[i]+wants[i])
	}
}

// newcomer reports whether the client has taken less than the transfer needs for reordering.
func (s *Share) newcomer() bool { return s.took < s.need }

// fill lowers each of the claims to an even share of total, where those that claim less leave the rest to the others
// (max-min fairness), and returns their sum.
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
