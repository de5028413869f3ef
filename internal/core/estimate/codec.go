package estimate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"time"
)

// A Record is encoded as a header, a row for each entry, and a checksum of everything before it. Numbers are
// little-endian.

const (
	recordMagic   = "tributary history\n"
	recordVersion = 1
)

type recordHeader struct {
	Magic                       [len(recordMagic)]byte
	Version                     uint16
	Networks, Origins, Refusals uint16 // numbers of rows
	Salt                        Salt
}

type networkRow struct {
	Network uint64
	Seen    int64
	Rates   [24]float32 // natural logarithms of bytes per second
	Weights [24]uint8
}

type originRow struct {
	Network, Origin        uint64
	Seen, Limited, Counted int64
	Rate                   float32
	RTT                    uint32 // microseconds
	Weight                 uint8
	Pipelining             uint8
	Conns, MaxConns        int8
}

type refusalRow struct {
	Key  uint64
	Seen int64
}

// MaxRecord is the maximum size of an encoded Record in bytes.
const MaxRecord = 44 << 10

// ErrNoRecord reports that bytes are not a valid Record of this version.
var ErrNoRecord = errors.New("damaged, or written by another version")

// Marshal encodes the record, without entries that have expired at now.
func (r *Record) Marshal(now time.Time) []byte {
	h := recordHeader{Version: recordVersion, Salt: r.salt}
	copy(h.Magic[:], recordMagic)
	var rows []any
	for _, k := range slices.Sorted(maps.Keys(r.networks)) { // by hash, so that the order reveals nothing
		if n := r.networks[k]; recent(now, n.seen, recordLife) {
			row := networkRow{Network: uint64(k), Seen: n.seen}
			for i, l := range n.hours {
				row.Rates[i], row.Weights[i] = l.log, l.n
			}
			rows = append(rows, row)
			h.Networks++
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(r.origins), originKey.compare) {
		if s := r.origins[k]; recent(now, s.seen, recordLife) {
			rows = append(rows, originRow{
				Network:    uint64(k.network),
				Origin:     uint64(k.origin),
				Seen:       s.seen,
				Limited:    s.limited,
				Counted:    s.counted,
				Rate:       s.rate.log,
				Weight:     s.rate.n,
				RTT:        uint32(s.rtt.Microseconds()),
				Pipelining: uint8(s.pipelining),
				Conns:      s.conns,
				MaxConns:   s.maxConns,
			})
			h.Origins++
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.refusals)) {
		if at := r.refusals[k]; recent(now, at, max(exclusionLife, historyLife)) {
			rows = append(rows, refusalRow{uint64(k), at})
			h.Refusals++
		}
	}
	b, _ := binary.Append(nil, binary.LittleEndian, h) // fixed sizes: this cannot fail
	for _, row := range rows {
		b, _ = binary.Append(b, binary.LittleEndian, row)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func (k originKey) compare(o originKey) int {
	return cmp.Or(cmp.Compare(k.network, o.network), cmp.Compare(k.origin, o.origin))
}

// UnmarshalRecord decodes a record. It returns ErrNoRecord if b is not valid.
func UnmarshalRecord(b []byte) (*Record, error) {
	if len(b) < crc32.Size {
		return nil, ErrNoRecord
	}
	b, sum := b[:len(b)-crc32.Size], b[len(b)-crc32.Size:]
	if crc32.ChecksumIEEE(b) != binary.LittleEndian.Uint32(sum) {
		return nil, ErrNoRecord
	}
	d := decoder{from: bytes.NewReader(b)}
	var h recordHeader
	d.read(&h)
	if d.bad || string(h.Magic[:]) != recordMagic || h.Version != recordVersion ||
		h.Networks > maxNetworks || h.Origins > maxOrigins || h.Refusals > maxRefusals {
		return nil, ErrNoRecord
	}
	r := NewRecord(h.Salt)
	for range h.Networks {
		var row networkRow
		d.read(&row)
		n := networkEntry{seen: d.time(row.Seen)}
		for i := range n.hours {
			n.hours[i] = d.level(row.Rates[i], row.Weights[i])
		}
		r.networks[key(row.Network)] = n
	}
	for range h.Origins {
		var row originRow
		d.read(&row)
		rtt := time.Duration(row.RTT) * time.Microsecond
		d.check(rtt <= maxRTT && row.Pipelining <= uint8(Broken) && row.Conns >= 0 && row.Conns <= maxConns &&
			row.MaxConns >= 0)
		r.origins[originKey{key(row.Network), key(row.Origin)}] = originEntry{
			seen:       d.time(row.Seen),
			limited:    d.time(row.Limited),
			counted:    d.time(row.Counted),
			rate:       d.level(row.Rate, row.Weight),
			rtt:        rtt,
			pipelining: Pipelining(row.Pipelining),
			conns:      row.Conns,
			maxConns:   row.MaxConns,
		}
	}
	for range h.Refusals {
		var row refusalRow
		d.read(&row)
		r.refusals[key(row.Key)] = d.time(row.Seen)
	}
	if d.bad || d.from.Len() > 0 {
		return nil, ErrNoRecord
	}
	return r, nil
}

// decoder reads rows and notes whether any was invalid.
type decoder struct {
	from *bytes.Reader
	bad  bool
}

func (d *decoder) read(row any) { d.check(binary.Read(d.from, binary.LittleEndian, row) == nil) }

func (d *decoder) check(ok bool) { d.bad = d.bad || !ok }

func (d *decoder) time(at int64) int64 {
	d.check(at >= 0)
	return at
}

func (d *decoder) level(log float32, n uint8) level {
	d.check(n == 0 && log == 0 || n <= mostWeight && log >= 0 && log <= float32(math.Log(maxRate))) // NaN fails, too
	return level{log, n}
}
