package engine

import (
	"math"
	"math/rand/v2"
	"testing"
)

const mib = 1 << 20

// member is a transfer that keeps to its window: it records its windows.
type member struct {
	*Share
	window int64
	told   int
}

// member adds a transfer whose client has taken as much as it needs.
func (b *Budget) member(want int64) *member {
	m := b.newcomer(want)
	m.Took(max(want, minGrant))
	return m
}

func (b *Budget) newcomer(want int64) *member {
	m := &member{}
	m.Share = b.Join(want, 0, func(n int64) { m.window = n; m.told++ })
	return m
}

// settle lets every member hold no more than its window until nothing changes.
func settle(all ...*member) {
	for range len(all) + 1 {
		for _, m := range all {
			m.Holds(m.window)
		}
	}
}

func TestBudget(t *testing.T) {
	t.Run("it is told its first grant", func(t *testing.T) {
		if m := NewBudget(mib, mib).member(0); m.window != minGrant {
			t.Errorf("window %d", m.window)
		}
	})
	t.Run("alone it gets what it wants, but no more than one may have", func(t *testing.T) {
		b := NewBudget(64*mib, 16*mib)
		m := b.member(5 * mib)
		if m.window != 5*mib || b.Granted() != 5*mib {
			t.Errorf("window %d, granted %d", m.window, b.Granted())
		}
		m.Need(mib)
		if m.window != 5*mib {
			t.Errorf("it needs little, and nobody else needs the rest: window %d", m.window)
		}
		if m := b.member(100 * mib); m.window != 16*mib {
			t.Errorf("window %d", m.window)
		}
	})
	t.Run("a newcomer grows as the others give back", func(t *testing.T) {
		b := NewBudget(4*mib, 4*mib)
		first := b.member(4 * mib)
		next := b.member(4 * mib)
		if next.window != minGrant {
			t.Errorf("the newcomer has %d before anything was given back", next.window)
		}
		if first.window != 2*mib {
			t.Errorf("the first one is told %d", first.window)
		}
		first.Holds(3 * mib)
		if next.window != mib || b.Granted() != 4*mib {
			t.Errorf("the newcomer has %d, granted %d", next.window, b.Granted())
		}
		first.Holds(mib) // less than its share: it keeps its share
		if next.window != 2*mib || first.window != 2*mib || b.Granted() != 4*mib {
			t.Errorf("%d and %d, granted %d", first.window, next.window, b.Granted())
		}
		first.Leave()
		if next.window != 4*mib {
			t.Errorf("alone again it has %d", next.window)
		}
		next.Leave()
		if b.Granted() != 0 {
			t.Errorf("%d granted to nobody", b.Granted())
		}
	})
	t.Run("who wants little leaves the rest to the others", func(t *testing.T) {
		b := NewBudget(10*mib, 10*mib)
		small, large, huge := b.member(mib), b.member(100*mib), b.member(100*mib)
		settle(small, large, huge)
		if small.window != mib || large.window != huge.window || large.window != 9*mib/2 {
			t.Errorf("%d, %d, %d", small.window, large.window, huge.window)
		}
	})
	t.Run("more members than least grants", func(t *testing.T) {
		b := NewBudget(mib, mib)
		var all []*member
		for range 20 {
			all = append(all, b.member(mib))
		}
		settle(all...)
		for i, m := range all {
			if m.window != minGrant {
				t.Errorf("member %d has %d", i, m.window)
			}
		}
	})
}

// TestR191_BudgetRandom lets members come, want, hold and leave at random and checks the invariants after each step.
func TestR191_BudgetRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		total := mib + r.Int64N(16*mib)
		b := NewBudget(total, 1+r.Int64N(2*total))
		var all []*member
		for step := range 200 {
			before, joined := b.Granted(), false
			switch k := r.IntN(10); {
			case k < 2 || len(all) == 0:
				all, joined = append(all, b.member(r.Int64N(2*total))), true
			case k == 2:
				i := r.IntN(len(all))
				all[i].Leave()
				all[i].Leave() // once is enough, twice does no harm
				all = append(all[:i], all[i+1:]...)
			case k < 6:
				all[r.IntN(len(all))].Need(r.Int64N(2 * total))
			default:
				all[r.IntN(len(all))].Holds(r.Int64N(total))
			}
			sum := b.Granted()
			if joined {
				before += minGrant
			}
			if sum > max(total, before) {
				t.Fatalf("seed %d step %d: %d granted of %d", seed, step, sum, total)
			}
			for i, m := range all {
				if m.window > m.granted || m.granted < minGrant || m.granted > max(minGrant, b.most) {
					t.Fatalf("seed %d step %d: member %d has %d of %d", seed, step, i, m.window, m.granted)
				}
			}
		}
		for _, m := range all {
			m.Need(2 * total)
		}
		settle(all...)
		for i, m := range all {
			for j, o := range all {
				if m.window < m.want && o.window > max(minGrant, m.window+int64(len(all))) {
					t.Fatalf("seed %d: member %d has %d of %d, member %d has %d", seed, i, m.window, m.want, j, o.window)
				}
			}
		}
	}
}

// TestBudgetNeeds: a transfer that needs little leaves the rest to others, and takes it when nobody needs it.
func TestBudgetNeeds(t *testing.T) {
	b := NewBudget(10*mib, 8*mib)
	slow := []*member{b.member(8 * mib), b.member(8 * mib), b.member(8 * mib)}
	for _, m := range slow {
		m.Need(mib)
	}
	settle(slow...)
	for i, m := range slow {
		if m.window < 10*mib/3 {
			t.Errorf("member %d has %d while nobody needs the rest", i, m.window)
		}
	}
	fast := b.member(100 * mib)
	all := append(slow, fast)
	settle(all...)
	if fast.window != 7*mib || slow[0].window != mib {
		t.Errorf("the fast one has %d, a slow one %d", fast.window, slow[0].window)
	}
	slow[0].Need(math.MaxInt64)
	settle(all...)
	if slow[0].window != 4*mib || fast.window != 4*mib || slow[1].window != mib {
		t.Errorf("%d and %d for those who need much, %d", slow[0].window, fast.window, slow[1].window)
	}
}

// TestBudgetNewcomers: many transfers that begin at the same time get little until their clients have taken something, since what
// they hold cannot be taken back when still more begin.
func TestBudgetNewcomers(t *testing.T) {
	b := NewBudget(64*mib, 16*mib)
	first := b.newcomer(100 * mib)
	if first.window != 16*mib {
		t.Errorf("alone it has %d", first.window)
	}
	first.Leave()
	var all []*member
	for range 8 {
		all = append(all, b.newcomer(100*mib))
	}
	settle(all...)
	for i, m := range all {
		if m.window != mib { // an eighth of an even share
			t.Errorf("newcomer %d of 8 has %d", i, m.window)
		}
	}
	all[0].Took(4 * mib)
	if all[0].window != 4*mib {
		t.Errorf("its client has taken 4 MiB, and it has %d", all[0].window)
	}
	for _, m := range all {
		m.Took(16 * mib)
	}
	settle(all...)
	for i, m := range all {
		if m.window != 8*mib {
			t.Errorf("known client %d of 8 has %d", i, m.window)
		}
	}
}

// TestBudgetLingers: what transfers that ended took is not granted at once, since the collector may still keep it; with most of
// them gone, memory is returned.
func TestBudgetLingers(t *testing.T) {
	const total = 64 * mib
	b := NewBudget(total, total)
	var all []*Share
	for range 60 {
		all = append(all, b.Join(total, mib, func(int64) {}))
	}
	for range 100 {
		all[0].Leave()
		all = append(all[1:], b.Join(total, mib, func(int64) {}))
	}
	if room := b.room(); room != 4*mib {
		t.Errorf("with as many transfers as before %d bytes are free", room)
	}
	for n := len(all); n > 0; n-- {
		relieved, most := all[0].Leave(), total-int64(n-1)*mib
		if all = all[1:]; relieved != (n == 16) {
			t.Errorf("%d are left, return memory: %v", n-1, relieved)
		}
		if room := b.room(); n > 20 && room > most-mib*int64(60-n)/2 || room > most {
			t.Errorf("%d are left, and %d bytes are free", n-1, room)
		}
	}
	if room := b.room(); room != total {
		t.Errorf("nobody is left, and %d bytes are free", room)
	}
}

// TestBudgetScarce: a transfer begins with one link if a few more would leave nobody enough for several.
func TestBudgetScarce(t *testing.T) {
	b := NewBudget(64*mib, 16*mib)
	n := 0
	for ; !b.Scarce(perSecureTransfer); n++ {
		b.Join(16*mib, perSecureTransfer, func(int64) {})
	}
	if n < 30 || n > 50 {
		t.Errorf("memory is scarce after %d transfers", n)
	}
}

// TestBudgetCountsCosts: what transfers take in addition to their grants leaves less for grants.
func TestBudgetCountsCosts(t *testing.T) {
	const total = 64 << 20
	b := NewBudget(total, 16<<20)
	var grants int64
	var all []*Share
	for range 100 {
		all = append(all, b.Join(16<<20, perTransfer, func(int64) {}))
	}
	for _, s := range all {
		s.Took(16 << 20)
	}
	for _, s := range all {
		s.Holds(0)
	}
	if grants = b.Granted(); grants+100*perTransfer > total || grants+100*perTransfer < total-1<<20 {
		t.Errorf("grants of %d bytes beside costs of %d", grants, 100*perTransfer)
	}
	for _, s := range all[:10] { // ten of them have four times as many connections
		s.Costs(4 * perTransfer)
	}
	for _, s := range all {
		s.Holds(0)
	}
	if less := b.Granted(); less > grants-29*perTransfer || less < grants-31*perTransfer {
		t.Errorf("grants of %d bytes where costs rose by %d, had been %d", less, 30*perTransfer, grants)
	}
	if plain, secure := (Target{Scheme: "http"}).cost(), (Target{Scheme: "https"}).cost(); plain >= secure {
		t.Errorf("TLS costs %d bytes, without it %d", secure, plain)
	}
}
