package link

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of the memory. net.Resolver does not report how long an answer is valid, so answers are not kept for long.
const (
	keepAnswer = 30 * time.Second
	maxNames   = 256 // per link
	maxLinks   = 64
)

// family is an address family as an index.
type family int

const (
	v4 family = iota
	v6
	both // for a question whose answer has both families
)

func (f family) network() string { return [...]string{"ip4", "ip6"}[f] }

// question identifies a lookup that several callers may share.
type question struct {
	host   string
	family family
}

// memory holds the answers of one link in one state, and the server that gave the last one.
type memory struct {
	link Link // state in which the answers were learned: a new address may be a new network

	mu      sync.Mutex
	best    netip.AddrPort
	names   map[string]*answers
	flights map[question]*flight
}

func newMemory(l Link) *memory {
	return &memory{link: l, names: map[string]*answers{}, flights: map[question]*flight{}}
}

// answers are the known answers for a name.
type answers struct {
	addrs  [2][]netip.Addr
	expiry [2]time.Time // zero: not asked
}

// get returns the addresses of a family. An empty answer counts only if the other family has addresses: a negative
// answer about the whole name is not kept.
func (a *answers) get(f family, now time.Time) ([]netip.Addr, bool) {
	if f == both {
		four, known4 := a.get(v4, now)
		six, known6 := a.get(v6, now)
		return slices.Concat(six, four), known4 && known6
	}
	other := 1 - f
	known := now.Before(a.expiry[f]) && (len(a.addrs[f]) > 0 || len(a.addrs[other]) > 0 && now.Before(a.expiry[other]))
	return a.addrs[f], known
}

func (a *answers) last() time.Time {
	if a.expiry[v4].After(a.expiry[v6]) {
		return a.expiry[v4]
	}
	return a.expiry[v6]
}

// put remembers an answer. If the memory is full, it drops the name that expires first.
func (m *memory) put(q question, addrs []netip.Addr, now time.Time) {
	a := m.names[q.host]
	if a == nil {
		if len(m.names) >= maxNames {
			oldest := ""
			for name, b := range m.names {
				if oldest == "" || b.last().Before(m.names[oldest].last()) {
					oldest = name
				}
			}
			delete(m.names, oldest)
		}
		a = &answers{}
		m.names[q.host] = a
	}
	for _, f := range []family{v4, v6} {
		if q.family == f || q.family == both {
			a.addrs[f], a.expiry[f] = only(f, slices.Clone(addrs)...), now.Add(keepAnswer)
		}
	}
}

// flight is a question that is being asked.
type flight struct {
	cancel  context.CancelFunc
	waiters int
	done    chan struct{} // closed when addrs and err are set
	addrs   []netip.Addr
	err     error
}

// lookup returns a remembered answer or the outcome of ask, which runs once for all callers with the same question and
// ends when the last of them leaves.
func (m *memory) lookup(ctx context.Context, q question,
	ask func(context.Context) ([]netip.Addr, error),
) ([]netip.Addr, error) {
	m.mu.Lock()
	if a := m.names[q.host]; a != nil {
		if addrs, ok := a.get(q.family, time.Now()); ok {
			m.mu.Unlock()
			return slices.Clone(addrs), nil
		}
	}
	f := m.flights[q]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		var actx context.Context
		actx, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), maxLookup)
		m.flights[q] = f
		go m.fly(actx, q, f, ask)
	}
	f.waiters++
	m.mu.Unlock()

	select {
	case <-f.done:
		return slices.Clone(f.addrs), f.err
	case <-ctx.Done():
	}
	m.mu.Lock()
	f.waiters--
	last := f.waiters == 0
	if last && m.flights[q] == f {
		delete(m.flights, q)
	}
	m.mu.Unlock()
	if last {
		f.cancel()
		<-f.done
	}
	return nil, ctx.Err()
}

// fly asks one question and remembers the answer.
func (m *memory) fly(ctx context.Context, q question, f *flight, ask func(context.Context) ([]netip.Addr, error)) {
	defer f.cancel()
	f.addrs, f.err = ask(ctx)
	m.mu.Lock()
	if f.err == nil {
		m.put(q, f.addrs, time.Now())
	}
	if m.flights[q] == f {
		delete(m.flights, q)
	}
	m.mu.Unlock()
	close(f.done)
}

// server returns the server that answered last.
func (m *memory) server() netip.AddrPort {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.best
}

func (m *memory) setServer(s netip.AddrPort) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.best = s
}
