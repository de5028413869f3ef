package estimate

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"
)

const (
	maxNetworks = 64
	maxOrigins  = 512
	maxRefusals = 512

	recordLife = 30 * 24 * time.Hour

	// limitLife is how long a server's limits, and the number of connections that paid off, are remembered. A server
	// may allow tomorrow what it does not allow today, and the connections that paid off today may be too many then.
	// Transfers add connections, but never try fewer.
	limitLife = 24 * time.Hour
)

// Salt makes the keys of a Record useless outside it.
type Salt [16]byte

// Record is the part of the findings that outlives the process: the rates of networks by hour of the day, the
// performance of origins over them, and refusals. Networks, origins and paths are stored as hashes with the record's
// own salt. A Record holds at most 64 networks, 512 origins and 512 refusals. The oldest are evicted first, and every
// entry expires after 30 days.
//
// A Record affects only speed: whatever it contains, requests are checked as they are without it.
type Record struct {
	salt     Salt
	networks map[key]networkEntry
	origins  map[originKey]originEntry
	refusals map[key]int64 // times of refusals in seconds of the wall clock
}

type key uint64

type originKey struct{ network, origin key }

// networkEntry is the memory of a network. Times are in seconds of the wall clock, since no other clock survives a
// restart.
type networkEntry struct {
	seen  int64
	hours [24]level
}

// originEntry is the memory of an origin over a network.
type originEntry struct {
	seen       int64
	limited    int64 // when a limit was last found
	counted    int64 // when conns was last found
	rate       level
	rtt        time.Duration
	pipelining Pipelining
	conns      int8
	maxConns   int8
}

// expire discards limits and numbers of connections that are too old.
func (s *originEntry) expire(now time.Time) {
	if !recent(now, s.counted, limitLife) {
		s.conns = 0
	}
	if recent(now, s.limited, limitLife) {
		return
	}
	s.maxConns = 0
	if s.pipelining == Broken {
		s.pipelining = Untried
	}
}

// NewRecord returns an empty Record.
func NewRecord(s Salt) *Record {
	return &Record{
		salt: s, networks: map[key]networkEntry{}, origins: map[originKey]originEntry{}, refusals: map[key]int64{},
	}
}

// key hashes the parts of a name.
func (r *Record) key(parts ...string) key {
	text := slices.Clone(r.salt[:])
	for _, p := range parts {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(text)
	return key(binary.BigEndian.Uint64(sum[:]))
}

func (r *Record) originKey(network string, o Origin) originKey {
	return originKey{r.key("network", network), r.key("origin", string(o))}
}

// Link returns the entry of origin o over a network. If the origin's rate is unknown, Rate is that of the network at
// this hour.
func (r *Record) Link(now time.Time, network string, o Origin) Entry {
	k := r.originKey(network, o)
	var e Entry
	if s, ok := r.origins[k]; ok && recent(now, s.seen, recordLife) {
		s.expire(now)
		e = Entry{
			Rate:       s.rate.value(),
			RTT:        s.rtt,
			Pipelining: s.pipelining,
			Conns:      s.conns,
			MaxConns:   s.maxConns,
		}
	}
	if n, ok := r.networks[k.network]; ok && e.Rate == 0 && recent(now, n.seen, recordLife) {
		e.Rate = n.rate(now.Hour())
	}
	return e
}

// SetLink records what a transfer itself found about origin o over a network. Zero fields of e leave the stored values
// unchanged. sustained is the transfer's goodput there, or 0 if the transfer was too short to measure it; the rates
// then stay unchanged.
func (r *Record) SetLink(now time.Time, network string, o Origin, e Entry, sustained float64) {
	k, at := r.originKey(network, o), now.Unix()
	s := r.origins[k]
	s.expire(now)
	s.seen = at
	s.limited, s.counted = min(s.limited, at), min(s.counted, at) // the clock may have been fast
	if e.MaxConns > 0 || e.Pipelining == Broken {
		s.limited = at
	}
	if e.MaxConns > 0 {
		s.maxConns = e.MaxConns
	}
	if e.RTT > 0 {
		s.rtt = min(e.RTT, maxRTT)
	}
	if e.Pipelining != Untried {
		s.pipelining = e.Pipelining
	}
	if n := min(e.Conns, maxConns); n > 0 {
		s.conns, s.counted = n, at
	}
	if valid(sustained) {
		s.rate.add(sustained)
		n := r.networks[k.network]
		n.seen = at
		n.hours[now.Hour()].add(sustained)
		put(r.networks, now, k.network, n, maxNetworks, func(n networkEntry) int64 { return n.seen })
	}
	put(r.origins, now, k, s, maxOrigins, func(s originEntry) int64 { return s.seen })
}

// Excluded is like History.Excluded, and includes the findings of earlier processes.
func (r *Record) Excluded(now time.Time, network string, o Origin) bool {
	return r.refused(now, r.key("excluded", network, string(o)), exclusionLife)
}

// SetExcluded records such a refusal.
func (r *Record) SetExcluded(now time.Time, network string, o Origin) {
	r.refuse(now, r.key("excluded", network, string(o)))
}

// Whole is like History.Whole, and includes the findings of earlier processes.
func (r *Record) Whole(now time.Time, o Origin, p Path) bool {
	return r.refused(now, r.pathKey(o, p), historyLife)
}

// SetWhole records that the origin does not serve ranges of the object.
func (r *Record) SetWhole(now time.Time, o Origin, p Path) { r.refuse(now, r.pathKey(o, p)) }

func (r *Record) pathKey(o Origin, p Path) key {
	return r.key("whole", string(o), string(binary.BigEndian.AppendUint64(nil, uint64(p))))
}

func (r *Record) refused(now time.Time, k key, life time.Duration) bool {
	at, ok := r.refusals[k]
	return ok && at <= now.Unix() && recent(now, at, life)
}

func (r *Record) refuse(now time.Time, k key) {
	put(r.refusals, now, k, now.Unix(), maxRefusals, func(at int64) int64 { return at })
}

// recent reports whether at is at most life ago. A time in the future counts as recent: the clock is or was wrong, and
// most machines with a wrong clock have only recently started.
func recent(now time.Time, at int64, life time.Duration) bool {
	return now.Unix()-at <= int64(life/time.Second)
}

// put sets an entry of a bounded map. If the map is full, the entry whose time is farthest from now, past or future,
// makes room.
func put[K comparable, V any](m map[K]V, now time.Time, k K, v V, most int, at func(V) int64) {
	if _, ok := m[k]; !ok && len(m) >= most {
		var oldest K
		age := int64(-1)
		for k, v := range m {
			if d := now.Unix() - at(v); max(d, -d) > age {
				oldest, age = k, max(d, -d)
			}
		}
		delete(m, oldest)
	}
	m[k] = v
}

// Limits on plausible values.
const (
	maxRate  = 10e9 // bytes per second
	maxRTT   = 2 * time.Second
	maxConns = 8
)

// valid reports whether a rate is plausible.
func valid(rate float64) bool { return rate >= 1 && rate <= maxRate }

// level is an average rate over days. Its logarithm moves towards that of each new rate by a decreasing part of the
// way, but at least a sixth, so that the last week counts. Like a median it resists single outliers: each counts as at
// most three times higher or lower.
type level struct {
	log float32 // natural logarithm of bytes per second
	n   uint8   // number of rates averaged, up to mostWeight; 0 = unknown
}

const (
	mostWeight = 6
	outlier    = 3
)

func (l *level) add(rate float64) {
	l.n = min(l.n+1, mostWeight)
	if l.n == 1 {
		l.log = float32(math.Log(rate))
		return
	}
	most := math.Log(outlier)
	l.log += float32(max(-most, min(math.Log(rate)-float64(l.log), most)) / float64(l.n))
}

// value returns the rate, or 0 if it is unknown.
func (l level) value() float64 {
	if l.n == 0 {
		return 0
	}
	return math.Exp(float64(l.log))
}

// sameHour is the weight of a rate of the same hour relative to one of the adjacent hours.
const sameHour = 4

// rate returns the expected rate of a network at an hour of the day, from its rates at this hour and, with less weight,
// at the adjacent hours. If those are unknown, it uses the rates at all hours. It returns 0 if nothing is known.
func (n networkEntry) rate(hour int) float64 {
	var near, all mean
	for i, l := range n.hours {
		all.add(l, 1)
		switch (i - hour + 24) % 24 {
		case 0:
			near.add(l, sameHour)
		case 1, 23:
			near.add(l, 1)
		}
	}
	if near.weight > 0 {
		return near.value()
	}
	return all.value()
}

// mean is a geometric mean of levels.
type mean struct{ sum, weight float64 }

func (m *mean) add(l level, weight float64) {
	weight *= float64(l.n)
	m.sum += weight * float64(l.log)
	m.weight += weight
}

func (m *mean) value() float64 {
	if m.weight == 0 {
		return 0
	}
	return math.Exp(m.sum / m.weight)
}
