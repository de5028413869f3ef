package netlab

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"time"
)

// opportunity is the capacity of one line of a trace, in bytes.
const opportunity = 1500

// Trace is a recorded rate in mahimahi's format: one line per opportunity to send 1500 bytes, its time in milliseconds
// since the start, in non-descending order. After the last line, the trace repeats from there. A Trace is immutable.
type Trace struct {
	ms []uint32
}

// NewTrace returns the trace of the given opportunities.
func NewTrace(ms []uint32) (*Trace, error) {
	if len(ms) == 0 || ms[len(ms)-1] == 0 {
		return nil, fmt.Errorf("trace: it must last at least 1 ms")
	}
	for i := 1; i < len(ms); i++ {
		if ms[i] < ms[i-1] {
			return nil, fmt.Errorf("trace: line %d goes back in time", i+1)
		}
	}
	return &Trace{ms: ms}, nil
}

// ReadTrace reads a trace, gzipped or not.
func ReadTrace(r io.Reader) (*Trace, error) {
	br := bufio.NewReader(r)
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		br = bufio.NewReader(zr)
	}
	var ms []uint32
	lines := bufio.NewScanner(br)
	for lines.Scan() {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		v, err := strconv.ParseUint(string(text), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("trace: line %d: want a number of milliseconds, not %q", len(ms)+1, text)
		}
		ms = append(ms, uint32(v))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return NewTrace(ms)
}

// LoadTrace reads the trace in a file.
func LoadTrace(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	t, err := ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// WriteTo writes the trace as text.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	var b []byte
	for _, ms := range t.ms {
		b = append(strconv.AppendUint(b, uint64(ms), 10), '\n')
	}
	n, err := w.Write(b)
	return int64(n), err
}

// Period is the time after which the trace repeats.
func (t *Trace) Period() time.Duration {
	return time.Duration(t.ms[len(t.ms)-1]) * time.Millisecond
}

// Mean is the trace's mean rate.
func (t *Trace) Mean() BitRate {
	return BitRate(float64(len(t.ms)) * opportunity * 8 / t.Period().Seconds())
}

// Bytes returns how many bytes the trace lets pass in each step of a period; the last step may be shorter than the
// others.
func (t *Trace) Bytes(step time.Duration) []int64 {
	all := make([]int64, (t.Period()+step-1)/step)
	for _, ms := range t.ms {
		at := time.Duration(ms) * time.Millisecond
		all[max(0, at-1)/step] += opportunity // a line stands for the end of its millisecond
	}
	return all
}

// at returns the time of opportunity k since the trace's start; k continues to count through the repetitions.
func (t *Trace) at(k int64) time.Duration {
	n := int64(len(t.ms))
	return time.Duration(k/n)*t.Period() + time.Duration(t.ms[k%n])*time.Millisecond
}

// first returns the first opportunity at or after since.
func (t *Trace) first(since time.Duration) int64 {
	cycle := int64(max(since, 0) / t.Period())
	if since > 0 && since%t.Period() == 0 {
		cycle-- // the last lines of a cycle fall on the moment at which the next one begins
	}
	base := since - time.Duration(cycle)*t.Period()
	i := sort.Search(len(t.ms), func(i int) bool { return time.Duration(t.ms[i])*time.Millisecond >= base })
	return cycle*int64(len(t.ms)) + int64(i)
}
