package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/net/trace"
	"github.com/tributary-http/tributary/lab/netlab"
	"github.com/tributary-http/tributary/lab/sim"
)

// replayed is a link of a replay.
type replayed struct {
	name  string
	rates []sim.Rate
}

// payload is the share of an opportunity in a mahimahi trace that is content: 1448 of 1500 bytes.
const payload = 1448. / 1500

// readTrace reads the links of a trace: output of tributary get --trace (.json), CSV (.csv), or mahimahi's format.
// "#NAME" after the name of a .json file selects one link.
func readTrace(arg string) ([]replayed, error) {
	file, only, _ := strings.Cut(arg, "#")
	name := strings.TrimSuffix(filepath.Base(file), ".gz")
	ext := filepath.Ext(name)
	name = strings.TrimSuffix(name, ext)
	if only != "" && ext != ".json" {
		return nil, fmt.Errorf("--trace %s: only a .json holds several links", arg)
	}
	var links []replayed
	switch ext {
	case ".json", ".csv":
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--trace: %w", err)
		}
		defer f.Close()
		if ext == ".json" {
			links, err = readRecorded(f, only)
		} else {
			links = []replayed{{name: name}}
			links[0].rates, err = readCSV(f)
		}
		if err != nil {
			return nil, fmt.Errorf("--trace %s: %w", arg, err)
		}
	default:
		t, err := netlab.LoadTrace(file)
		if err != nil {
			return nil, fmt.Errorf("--trace: %w", err)
		}
		rates := steps(t.Bytes(sim.SampleStep), sim.SampleStep, payload)
		rates[len(rates)-1].For = t.Period() - time.Duration(len(rates)-1)*sim.SampleStep
		rates[len(rates)-1].Rate *= sim.SampleStep.Seconds() / rates[len(rates)-1].For.Seconds()
		links = []replayed{{name, rates}}
	}
	for _, l := range links {
		if !slices.ContainsFunc(l.rates, func(r sim.Rate) bool { return r.Rate > 0 && r.For > 0 }) {
			return nil, fmt.Errorf("--trace %s: link %q carries nothing", arg, l.name)
		}
	}
	return links, nil
}

// readRecorded reads a record of tributary get --trace: the bytes of each link towards the client, from the first to
// the last.
func readRecorded(r io.Reader, only string) (links []replayed, err error) {
	t, err := trace.Read(r)
	if err != nil {
		return nil, err
	}
	for _, l := range t.Links {
		first := slices.IndexFunc(l.Down, func(n int64) bool { return n > 0 })
		if first < 0 || only != "" && l.Name != only {
			continue
		}
		links = append(links, replayed{l.Name, steps(l.Down[first:], t.Step, 1)})
	}
	if len(links) == 0 {
		if only != "" {
			return nil, fmt.Errorf("no bytes of a link %q", only)
		}
		return nil, errors.New("no bytes of any link")
	}
	return links, nil
}

// steps converts bytes per step to rates.
func steps(bytes []int64, step time.Duration, share float64) (rates []sim.Rate) {
	for _, n := range bytes {
		rates = append(rates, sim.Rate{For: step, Rate: float64(n) * share / step.Seconds()})
	}
	return rates
}

// The columns of a CSV trace.
const (
	csvSeconds = "seconds"
	csvMbit    = "mbit_per_s"
	csvBytes   = "bytes"
)

// readCSV reads a table whose first line names its columns: seconds, and mbit_per_s or bytes. A row applies from its
// time to that of the next one; the last row applies for the same duration as the one before.
func readCSV(r io.Reader) ([]sim.Rate, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 3 {
		return nil, errors.New("want a line with the columns' names and two rows or more")
	}
	column := func(name string) int {
		return slices.IndexFunc(rows[0], func(c string) bool { return strings.TrimSpace(c) == name })
	}
	at, mbit, bytes := column(csvSeconds), column(csvMbit), column(csvBytes)
	if at < 0 || (mbit < 0) == (bytes < 0) {
		return nil, fmt.Errorf("the first line must name the columns %s and either %s or %s", csvSeconds, csvMbit,
			csvBytes)
	}
	number := func(line, column int) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(rows[line][column]), 64)
		if err != nil || !(v >= 0 && v < 1e12) {
			return 0, fmt.Errorf("line %d: want a number of 0 or more, not %q", line+1, rows[line][column])
		}
		return v, nil
	}
	var rates []sim.Rate
	last := 0.
	for line := 1; line < len(rows); line++ {
		from, err := number(line, at)
		if err != nil {
			return nil, err
		}
		value, err := number(line, max(mbit, bytes))
		if err != nil {
			return nil, err
		}
		if n := len(rates); n > 0 {
			length := time.Duration((from - last) * 1e9)
			if length < time.Millisecond {
				return nil, fmt.Errorf("line %d: want a time at least 1 ms after that of the line before", line+1)
			}
			rates[n-1].For = length
		}
		last = from
		rates = append(rates, sim.Rate{Rate: value})
	}
	rates[len(rates)-1].For = rates[len(rates)-2].For
	for i := range rates {
		if bytes >= 0 {
			rates[i].Rate /= rates[i].For.Seconds()
		} else {
			rates[i].Rate *= 1e6 / 8
		}
	}
	return rates, nil
}
