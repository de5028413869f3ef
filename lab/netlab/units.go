package netlab

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// BitRate is a rate in bits per second.
type BitRate float64

// Convenient rates.
const (
	Kbit BitRate = 1e3
	Mbit BitRate = 1e6
)

// String prints the rate in Mbit/s.
func (r BitRate) String() string {
	return strconv.FormatFloat(float64(r/Mbit), 'f', -1, 64) + "Mbit/s"
}

// UnmarshalText reads "80Mbit/s", "500 kbit" or "1Gbit".
func (r *BitRate) UnmarshalText(text []byte) error {
	v, err := parseUnit(strings.TrimSuffix(string(text), "/s"),
		map[string]float64{"bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9})
	if err != nil {
		return fmt.Errorf("rate %q: %w", text, err)
	}
	*r = BitRate(v)
	return nil
}

// Bytes is a size in bytes.
type Bytes int64

var byteUnits = map[string]float64{
	"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// ParseBytes reads "50MB", "10kB", "512KiB" or "7B".
func ParseBytes(s string) (Bytes, error) {
	v, err := parseUnit(s, byteUnits)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", s, err)
	}
	return Bytes(math.Round(v)), nil
}

// String prints the size in the largest unit that needs no fraction.
func (b Bytes) String() string {
	for _, u := range []string{"GB", "GiB", "MB", "MiB", "kB", "KiB"} {
		if n := Bytes(byteUnits[u]); b >= n && b%n == 0 {
			return strconv.FormatInt(int64(b/n), 10) + u
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// UnmarshalText is ParseBytes.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBytes(string(text))
	return err
}

// Share is a fraction from 0 to 1, for random loss.
type Share float64

// UnmarshalText reads a percentage: "0.05%".
func (s *Share) UnmarshalText(text []byte) error {
	v, err := parseUnit(string(text), map[string]float64{"%": 0.01})
	if err != nil || v > 1 {
		return fmt.Errorf("share %q: want a percentage up to 100%%, such as \"0.05%%\"", text)
	}
	*s = Share(v)
	return nil
}

// Queue is the limit of a drop-tail queue: Bytes if it is not 0, otherwise the bytes of Time at the link's full rate;
// if both are 0, the larger of 100 ms and 64 KiB.
type Queue struct {
	Bytes Bytes
	Time  time.Duration
}

const (
	defaultQueueTime  = 100 * time.Millisecond
	defaultQueueBytes = 64 << 10
)

// UnmarshalText reads a size ("256KiB") or a duration ("100ms").
func (q *Queue) UnmarshalText(text []byte) error {
	if d, err := time.ParseDuration(string(text)); err == nil && d > 0 {
		*q = Queue{Time: d}
		return nil
	}
	b, err := ParseBytes(string(text))
	if err != nil || b <= 0 {
		return fmt.Errorf("queue %q: want a size or a duration, such as \"256KiB\" or \"100ms\"", text)
	}
	*q = Queue{Bytes: b}
	return nil
}

// limit returns the queue's limit in bytes on a link of the given full rate.
func (q Queue) limit(full BitRate) int {
	timed := func(d time.Duration) int { return int(float64(full) / 8 * d.Seconds()) }
	switch {
	case q.Bytes > 0:
		return int(q.Bytes)
	case q.Time > 0:
		return timed(q.Time)
	}
	return max(timed(defaultQueueTime), defaultQueueBytes)
}

func parseUnit(s string, units map[string]float64) (float64, error) {
	s = strings.TrimSpace(s)
	end := strings.LastIndexAny(s, "0123456789.") + 1
	v, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("want a number and a unit")
	}
	factor, ok := units[strings.TrimSpace(s[end:])]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", strings.TrimSpace(s[end:]))
	}
	return v * factor, nil
}
