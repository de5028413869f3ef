package estimate_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
)

const (
	home   = "wlan0 at home"
	mobile = "cellular"
	day    = 24 * time.Hour
)

var salt = estimate.Salt{1, 2, 3}

// within reports whether a rate is within some percent of another.
func within(got, want, percent float64) bool { return math.Abs(got-want) <= want*percent/100 }

// again encodes a record and decodes it.
func again(t *testing.T, r *estimate.Record, now time.Time) *estimate.Record {
	t.Helper()
	b := r.Marshal(now)
	if len(b) > estimate.MaxRecord {
		t.Errorf("%d bytes, more than %d", len(b), estimate.MaxRecord)
	}
	read, err := estimate.UnmarshalRecord(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read.Marshal(now), b) {
		t.Error("what was read is written otherwise")
	}
	return read
}

func TestRecord(t *testing.T) {
	r := estimate.NewRecord(salt)
	if e := r.Link(start, home, origin(1)); e != (estimate.Entry{}) {
		t.Errorf("an empty record knows %+v", e)
	}
	known := estimate.Entry{Rate: 1, RTT: 20 * ms, Pipelining: estimate.Works, Conns: 2, MaxConns: 3}
	r.SetLink(start, home, origin(1), known, 5*mb)
	r.SetLink(start, mobile, origin(1), estimate.Entry{}, mb)
	r = again(t, r, start)
	for _, c := range []struct {
		name    string
		network string
		origin  int
		want    estimate.Entry
	}{
		{"the same", home, 1, estimate.Entry{Rate: 5 * mb, RTT: 20 * ms, Pipelining: estimate.Works, Conns: 2, MaxConns: 3}},
		{"another origin has the network's rate and nothing else", home, 2, estimate.Entry{Rate: 5 * mb}},
		{"another network", mobile, 1, estimate.Entry{Rate: mb}},
		{"an unknown network", "wlan0 in a train", 1, estimate.Entry{}},
	} {
		got := r.Link(start.Add(time.Hour), c.network, origin(c.origin))
		if !within(got.Rate, c.want.Rate, 0.1) {
			t.Errorf("%s: %.0f, want %.0f", c.name, got.Rate, c.want.Rate)
		}
		if got.Rate = c.want.Rate; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	// A transfer that was too short to measure changes no rate, and one that learned nothing erases nothing.
	r.SetLink(start, home, origin(1), estimate.Entry{Rate: 9 * mb}, 0)
	known.Rate = 5 * mb
	e := r.Link(start, home, origin(1))
	if !within(e.Rate, known.Rate, 0.1) {
		t.Errorf("after a short transfer: %+v", e)
	}
	if e.Rate = known.Rate; e != known {
		t.Errorf("after a short transfer: %+v", e)
	}
}

// TestRecordHours checks that the expected rate of a network is that of this hour or, if unknown, that of all hours.
func TestRecordHours(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 30, 0, 0, time.UTC) }
	r := estimate.NewRecord(salt)
	for i := range 10 {
		now := at(20).Add(time.Duration(i) * day)
		r.SetLink(now, home, origin(i), estimate.Entry{}, 2*mb)
		r.SetLink(now.Add(12*time.Hour), home, origin(i), estimate.Entry{}, 8*mb)
	}
	now := at(0).Add(10 * day)
	for hour, want := range map[int]float64{
		20: 2 * mb, 19: 2 * mb, 21: 2 * mb, 8: 8 * mb, 7: 8 * mb, 9: 8 * mb,
		14: 4 * mb, 0: 4 * mb, 23: 4 * mb, // the mean of the others
	} {
		if got := r.Link(now.Add(time.Duration(hour)*time.Hour), home, "https://other.example").Rate; !within(got, want, 0.1) {
			t.Errorf("at %d: %.0f, want %.0f", hour, got, want)
		}
	}
	// The hours of the network are in its user's time zone.
	r = estimate.NewRecord(salt)
	zone := time.FixedZone("", 7*3600)
	r.SetLink(at(20).In(zone), home, origin(1), estimate.Entry{}, mb)
	r.SetLink(at(12), home, origin(1), estimate.Entry{}, 4*mb)
	if got := r.Link(at(3), home, origin(2)).Rate; !within(got, mb, 0.1) {
		t.Errorf("in the zone: %.0f", got)
	}
	// The hour itself counts more than the two adjacent ones.
	r = estimate.NewRecord(salt)
	for hour, rate := range map[int]float64{7: mb, 8: 4 * mb, 9: mb} {
		r.SetLink(at(hour), home, origin(1), estimate.Entry{}, rate)
	}
	if got := r.Link(at(8), home, origin(2)).Rate; got < 2*mb || got > 3*mb {
		t.Errorf("between two slow hours: %.0f", got)
	}
}

// TestRecordOutliers checks that a single outlier hardly counts, and that a change that lasts for days does.
func TestRecordOutliers(t *testing.T) {
	for _, outlier := range []float64{mb / 1000, 1000 * mb} {
		r := estimate.NewRecord(salt)
		for range 10 {
			r.SetLink(start, home, origin(1), estimate.Entry{}, mb)
		}
		r.SetLink(start, home, origin(1), estimate.Entry{}, outlier)
		for _, o := range []estimate.Origin{origin(1), origin(2)} {
			if got := r.Link(start, home, o).Rate; !within(got, mb, 25) {
				t.Errorf("after one of %.0f, %s: %.0f", outlier, o, got)
			}
		}
	}
	r := estimate.NewRecord(salt)
	for range 10 {
		r.SetLink(start, home, origin(1), estimate.Entry{}, mb)
	}
	for range 20 {
		r.SetLink(start, home, origin(1), estimate.Entry{}, 4*mb)
	}
	if got := r.Link(start, home, origin(2)).Rate; !within(got, 4*mb, 10) {
		t.Errorf("after 20 times four as much: %.0f", got)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1, 0, 0.5, 1e30} {
		r.SetLink(start, home, origin(1), estimate.Entry{}, bad)
	}
	if got := r.Link(start, home, origin(2)).Rate; !within(got, 4*mb, 10) {
		t.Errorf("after what is not a rate: %.0f", got)
	}
}

// TestRecordLife checks that rates expire after a month, limits and numbers of connections after a day, and refusals after minutes.
func TestRecordLife(t *testing.T) {
	path := estimate.PathOf("/a.iso")
	fresh := func() *estimate.Record {
		r := estimate.NewRecord(salt)
		r.SetLink(start, home, origin(1), estimate.Entry{RTT: ms, Pipelining: estimate.Broken, MaxConns: 2, Conns: 1}, mb)
		r.SetExcluded(start, home, origin(1))
		r.SetWhole(start, origin(1), path)
		return r
	}
	for _, c := range []struct {
		after                                 time.Duration
		rate, network, limit, excluded, whole bool
	}{
		{0, true, true, true, true, true},
		{2 * time.Minute, true, true, true, true, true},
		{2*time.Minute + time.Second, true, true, true, false, true},
		{10 * time.Minute, true, true, true, false, true},
		{10*time.Minute + time.Second, true, true, true, false, false},
		{day, true, true, true, false, false},
		{day + time.Second, true, true, false, false, false},
		{30 * day, true, true, false, false, false},
		{30*day + time.Second, false, false, false, false, false},
	} {
		now := start.Add(c.after)
		for name, r := range map[string]*estimate.Record{"in memory": fresh(), "read": again(t, fresh(), now)} {
			e, other := r.Link(now, home, origin(1)), r.Link(now, home, origin(2))
			if (e.Rate > 0) != c.rate || (e.RTT > 0) != c.rate || (e.Conns > 0) != c.limit || (other.Rate > 0) != c.network {
				t.Errorf("%s after %v: %+v and %+v", name, c.after, e, other)
			}
			if (e.MaxConns > 0) != c.limit || (e.Pipelining == estimate.Broken) != c.limit {
				t.Errorf("%s after %v: %+v", name, c.after, e)
			}
			if r.Excluded(now, home, origin(1)) != c.excluded || r.Whole(now, origin(1), path) != c.whole {
				t.Errorf("%s after %v: excluded %v, whole %v", name, c.after, r.Excluded(now, home, origin(1)), r.Whole(now, origin(1), path))
			}
		}
	}
	r := again(t, fresh(), start)
	if r.Excluded(start, mobile, origin(1)) || r.Excluded(start, home, origin(2)) || r.Whole(start, origin(2), path) ||
		r.Whole(start, origin(1), estimate.PathOf("/b.iso")) {
		t.Error("a refusal counts for others")
	}
	if empty := len(estimate.NewRecord(salt).Marshal(start)); len(fresh().Marshal(start.Add(31*day))) != empty {
		t.Error("what is forgotten is written")
	}
}

// TestRecordLimitsAreTriedAgain checks that a limit and a number of connections that transfers only respect, and do not find again,
// count for a day, however many transfers there are.
func TestRecordLimitsAreTriedAgain(t *testing.T) {
	r := estimate.NewRecord(salt)
	now := start
	limited := estimate.Entry{Pipelining: estimate.Broken, MaxConns: 2, Conns: 4}
	for r.SetLink(now, home, origin(1), limited, mb); now.Before(start.Add(day)); now = now.Add(5 * time.Minute) {
		r.SetLink(now, home, origin(1), estimate.Entry{Rate: mb, RTT: ms}, mb)
		if e := r.Link(now, home, origin(1)); e.MaxConns != 2 || e.Pipelining != estimate.Broken || e.Conns != 4 {
			t.Fatalf("after %v: %+v", now.Sub(start), e)
		}
	}
	now = start.Add(day + time.Second)
	for _, r := range []*estimate.Record{r, again(t, r, now)} {
		e := r.Link(now, home, origin(1))
		if e.MaxConns != 0 || e.Pipelining != estimate.Untried || e.Conns != 0 || e.RTT != ms {
			t.Fatalf("after a day: %+v", e)
		}
	}
	// One of them is found again: the other one is not.
	r.SetLink(now, home, origin(1), estimate.Entry{MaxConns: 2}, mb)
	if e := r.Link(now.Add(time.Hour), home, origin(1)); e.MaxConns != 2 || e.Pipelining != estimate.Untried || e.Conns != 0 {
		t.Errorf("found again: %+v", e)
	}
	// A number of connections that paid off counts from now on, without the limit.
	r.SetLink(now.Add(12*time.Hour), home, origin(1), estimate.Entry{Conns: 3}, mb)
	if e := r.Link(now.Add(36*time.Hour), home, origin(1)); e.MaxConns != 0 || e.Conns != 3 {
		t.Errorf("a day later: %+v", e)
	}
	// A limit that is found again in time counts for another day.
	now = now.Add(12 * time.Hour)
	r.SetLink(now, home, origin(2), limited, mb)
	r.SetLink(now.Add(23*time.Hour), home, origin(2), limited, mb)
	if e := r.Link(now.Add(46*time.Hour), home, origin(2)); e.MaxConns != 2 || e.Pipelining != estimate.Broken || e.Conns != 4 {
		t.Errorf("found again in time: %+v", e)
	}
}

// TestRecordLimitsOfTheFuture checks that limits found while the clock was fast count for a day of the correct clock.
func TestRecordLimitsOfTheFuture(t *testing.T) {
	r := estimate.NewRecord(salt)
	r.SetLink(start.Add(1000*day), home, origin(1), estimate.Entry{Pipelining: estimate.Broken, MaxConns: 2, Conns: 4}, mb)
	r.SetLink(start, home, origin(1), estimate.Entry{}, mb)
	for after, known := range map[time.Duration]bool{0: true, day: true, day + time.Second: false} {
		e := r.Link(start.Add(after), home, origin(1))
		if (e.MaxConns > 0) != known || (e.Pipelining == estimate.Broken) != known || (e.Conns > 0) != known {
			t.Errorf("%v after the clock was set: %+v", after, e)
		}
	}
}

// TestRecordBounds checks that the record stays small, whatever is added, and that the oldest entries are evicted first.
func TestRecordBounds(t *testing.T) {
	r := estimate.NewRecord(salt)
	now := start
	network := func(i int) string { return fmt.Sprint("network ", i) }
	for i := range 1000 {
		r.SetLink(now, network(i), origin(0), estimate.Entry{RTT: ms}, mb)
		now = now.Add(time.Second)
	}
	for i := range 1000 {
		r.SetLink(now, network(0), origin(i), estimate.Entry{RTT: ms}, mb)
		r.SetExcluded(now, network(0), origin(i))
		r.SetWhole(now, origin(i), 7)
		now = now.Add(time.Second / 10)
	}
	r = again(t, r, now)
	networks, origins, refusals := 0, 0, 0
	for i := range 1000 {
		if r.Link(now, network(i), "https://other.example").Rate > 0 {
			networks++
		}
		if r.Link(now, network(0), origin(i)).RTT > 0 {
			origins++
		}
		if r.Excluded(now, network(0), origin(i)) {
			refusals++
		}
		if r.Whole(now, origin(i), 7) {
			refusals++
		}
	}
	if networks != 64 || origins != 512 || refusals != 512 {
		t.Errorf("%d networks, %d origins, %d refusals", networks, origins, refusals)
	}
	if r.Link(now, network(999), "https://other.example").Rate == 0 || r.Link(now, network(900), "https://other.example").Rate > 0 ||
		r.Link(now, network(0), origin(999)).RTT == 0 || r.Link(now, network(0), origin(300)).RTT > 0 || !r.Excluded(now, network(0), origin(999)) {
		t.Error("the oldest does not go first")
	}
}

// TestRecordSalt checks that the same findings have different keys in each record, and that no record contains a name.
func TestRecordSalt(t *testing.T) {
	write := func(s estimate.Salt) []byte {
		r := estimate.NewRecord(s)
		r.SetLink(start, home, "https://secret.example", estimate.Entry{}, mb)
		r.SetExcluded(start, home, "https://secret.example")
		r.SetWhole(start, "https://secret.example", estimate.PathOf("/secret"))
		return r.Marshal(start)
	}
	one, other := write(estimate.Salt{1}), write(estimate.Salt{2})
	same := 0
	for i := 0; i+8 <= len(one); i++ {
		if word := one[i : i+8]; binary.LittleEndian.Uint64(word)>>32 != 0 && bytes.Contains(other, word) && bytes.Count(word, []byte{0}) < 3 {
			same++
		}
	}
	if header := len("tributary history\n"); same > header {
		t.Errorf("%d words are in both", same)
	}
	for _, name := range []string{"secret", "home", "wlan0", "example"} {
		if bytes.Contains(one, []byte(name)) {
			t.Errorf("%q is in the file", name)
		}
	}
	if !bytes.Equal(one, write(estimate.Salt{1})) {
		t.Error("the same record is written in two ways")
	}
}

// TestRecordClock checks that a clock that is wrong for a while, as on many machines when they start, costs no entries, and that
// entries made while the clock was fast do not block others forever.
func TestRecordClock(t *testing.T) {
	r := estimate.NewRecord(salt)
	r.SetLink(start, home, origin(1), estimate.Entry{}, mb)
	r = again(t, r, time.Unix(100, 0))
	if r.Link(start, home, origin(1)).Rate == 0 {
		t.Error("written in 1970: the rate is lost")
	}
	future := start.Add(1000 * day)
	for i := range 600 {
		r.SetLink(future, fmt.Sprint(i), origin(i), estimate.Entry{RTT: ms}, mb)
		r.SetExcluded(future, home, origin(i))
	}
	for i := range 64 {
		r.SetLink(start, fmt.Sprint(i), origin(i), estimate.Entry{RTT: 2 * ms}, 2*mb)
		r.SetExcluded(start, home, origin(i))
	}
	r = again(t, r, start)
	for i := range 64 {
		e, other := r.Link(start, fmt.Sprint(i), origin(i)), r.Link(start, fmt.Sprint(i), origin(i+1))
		if e.RTT != 2*ms || other.Rate == 0 || !r.Excluded(start, home, origin(i)) {
			t.Fatalf("entry %d of the present: %+v, %+v", i, e, other)
		}
	}
	if r.Excluded(start, home, origin(599)) {
		t.Error("a refusal of the future counts")
	}
}

// reseal gives changed bytes a valid checksum.
func reseal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b[:len(b)-4:len(b)-4], crc32.ChecksumIEEE(b[:len(b)-4]))
}

// TestRecordDamage checks that an invalid record is refused as a whole.
func TestRecordDamage(t *testing.T) {
	r := estimate.NewRecord(salt)
	r.SetLink(start, home, origin(1), estimate.Entry{RTT: ms, Pipelining: estimate.Works, Conns: 2, MaxConns: 2}, mb)
	r.SetWhole(start, origin(1), 7)
	good := r.Marshal(start)
	const header, network = 18 + 2 + 6 + 16, 8 + 8 + 96 + 24
	const row = header + network // of the origin
	for name, change := range map[string]func(b []byte) []byte{
		"empty":                func([]byte) []byte { return nil },
		"text":                 func([]byte) []byte { return []byte("{\"version\":1}\n") },
		"cut":                  func(b []byte) []byte { return b[:len(b)-1] },
		"cut and sealed":       func(b []byte) []byte { return reseal(b[:len(b)-1]) },
		"longer":               func(b []byte) []byte { return append(b, 0) },
		"longer and sealed":    func(b []byte) []byte { return reseal(append(b, 0)) },
		"a bit":                func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"another magic":        func(b []byte) []byte { b[0] = 'T'; return reseal(b) },
		"another version":      func(b []byte) []byte { b[18] = 2; return reseal(b) },
		"too many rows":        func(b []byte) []byte { b[20] = 65; return reseal(b) },
		"a time before 1970":   func(b []byte) []byte { b[header+15] = 0x80; return reseal(b) },
		"rate NaN":             func(b []byte) []byte { copy(b[row+40:], []byte{0, 0, 0xc0, 0x7f}); return reseal(b) },
		"rate too high":        func(b []byte) []byte { copy(b[row+40:], []byte{0, 0, 0xd0, 0x41}); return reseal(b) },
		"rate under 1 B/s":     func(b []byte) []byte { b[row+43] |= 0x80; return reseal(b) },
		"a round trip of 17 s": func(b []byte) []byte { b[row+47] = 1; return reseal(b) },
		"a weight of 7":        func(b []byte) []byte { b[row+48] = 7; return reseal(b) },
		"unknown pipelining":   func(b []byte) []byte { b[row+49] = 3; return reseal(b) },
		"9 connections":        func(b []byte) []byte { b[row+50] = 9; return reseal(b) },
		"-1 connections":       func(b []byte) []byte { b[row+50] = 0xff; return reseal(b) },
		"a limit of -1":        func(b []byte) []byte { b[row+51] = 0xff; return reseal(b) },
	} {
		if _, err := estimate.UnmarshalRecord(change(bytes.Clone(good))); !errors.Is(err, estimate.ErrNoRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := estimate.UnmarshalRecord(reseal(bytes.Clone(good))); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// FuzzRecord checks that decoding any bytes terminates, and that accepted values are within the limits.
func FuzzRecord(f *testing.F) {
	r := estimate.NewRecord(salt)
	f.Add(r.Marshal(start))
	r.SetLink(start, home, origin(1), estimate.Entry{RTT: ms, Pipelining: estimate.Broken, Conns: 2, MaxConns: 2}, mb)
	r.SetLink(start, mobile, origin(1), estimate.Entry{RTT: ms, Pipelining: estimate.Works}, 3*mb)
	r.SetExcluded(start, home, origin(1))
	f.Add(r.Marshal(start))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 {
			return
		}
		for _, b := range [][]byte{b, reseal(b)} {
			r, err := estimate.UnmarshalRecord(b)
			if err != nil {
				continue
			}
			for _, network := range []string{home, mobile} {
				for i := range 2 {
					e := r.Link(start, network, origin(i))
					if !(e.Rate >= 0 && e.Rate <= 1.01e10) || e.RTT < 0 || e.RTT > 2*time.Second || e.Pipelining > estimate.Broken ||
						e.Conns < 0 || e.Conns > 8 || e.MaxConns < 0 {
						t.Errorf("%+v", e)
					}
				}
			}
			r = again(t, r, start)
			r.SetLink(start, home, origin(1), estimate.Entry{}, mb)
			r.SetWhole(start, origin(1), 7)
			again(t, r, start)
		}
	})
}
