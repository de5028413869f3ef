package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Step is the length of the steps of a Recorder.
const Step = 100 * time.Millisecond

// Trace is a record of the bytes that links carried over time.
type Trace struct {
	Began time.Time // begin of the first step
	Step  time.Duration
	Links []Link
}

// Link is the record of one link. Steps after the last byte in a direction are omitted.
type Link struct {
	Name     string
	Down, Up []int64 // bytes in each step, towards this machine and away from it
}

// format names the format and its version.
const format = "tributary trace 1"

// file is a Trace as JSON.
type file struct {
	Format string     `json:"format"`
	Began  time.Time  `json:"began"`
	StepMS float64    `json:"step_ms"`
	Links  []fileLink `json:"links"`
}

type fileLink struct {
	Name string  `json:"name"`
	Down []int64 `json:"down_bytes"`
	Up   []int64 `json:"up_bytes"`
}

// Write writes the trace as JSON.
func (t Trace) Write(w io.Writer) error {
	f := file{Format: format, Began: t.Began.UTC(), StepMS: float64(t.Step) / 1e6, Links: []fileLink{}}
	for _, l := range t.Links {
		f.Links = append(f.Links, fileLink{l.Name, notNull(l.Down), notNull(l.Up)})
	}
	return json.NewEncoder(w).Encode(f)
}

func notNull(n []int64) []int64 {
	if n == nil {
		return []int64{}
	}
	return n
}

// most is the maximum number of bytes that Read reads: enough for four links over days.
const most = 256 << 20

// longest is the longest step that Read accepts.
const longest = time.Hour

var errFormat = errors.New("not a trace file of Tributary (format " + format + ")")

// Read reads the output of Write. The error says what is wrong with the content.
func Read(r io.Reader) (Trace, error) {
	var f file
	if err := json.NewDecoder(io.LimitReader(r, most)).Decode(&f); err != nil {
		return Trace{}, fmt.Errorf("%w: %w", errFormat, err)
	}
	if f.Format != format {
		return Trace{}, errFormat
	}
	step := f.StepMS * 1e6
	if !(step >= 1e6 && step <= float64(longest)) {
		return Trace{}, fmt.Errorf("steps of %g ms: want 1 ms to an hour", f.StepMS)
	}
	t := Trace{Began: f.Began, Step: time.Duration(math.Round(step))}
	for _, l := range f.Links {
		for _, all := range [][]int64{l.Down, l.Up} {
			for i, n := range all {
				if n < 0 {
					return Trace{}, fmt.Errorf("link %q: %d bytes in step %d", l.Name, n, i+1)
				}
			}
		}
		t.Links = append(t.Links, Link(l))
	}
	return t, nil
}
