package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// observer is the standard output of a downloader: it notes when bytes arrive, and hashes them.
type observer struct {
	began time.Time
	sum   hash.Hash
	seen  netlab.Download
}

func newObserver() *observer { return &observer{began: time.Now(), sum: sha256.New()} }

func (o *observer) Write(p []byte) (int, error) {
	o.seen.Reads = append(o.seen.Reads, netlab.Read{At: time.Since(o.began), N: len(p)})
	o.seen.Bytes += int64(len(p))
	return o.sum.Write(p)
}

// done returns the observations; the download ends now.
func (o *observer) done() netlab.Download {
	o.seen.Took = time.Since(o.began)
	o.seen.SHA256 = hex.EncodeToString(o.sum.Sum(nil))
	return o.seen
}

// measurement is one download and its observations. Times are in seconds, shares in percent. LinkDelta lies between the
// last data of the first and of the last link that carried any.
type measurement struct {
	Seconds   float64 `json:"seconds"`
	Percent   float64 `json:"percent"`  // of the limit of the same round; 0 = failed
	Physical  float64 `json:"physical"` // of the physical bound
	LinkDelta float64 `json:"link_delta"`
	Delivered int64   `json:"delivered_bytes"` // by the links, including headers and bytes after the end
	// Delivered beyond that of a plain download, as a share of the size
	Waste float64 `json:"waste"`
	// what the client has of the delivered bytes, at half of the time
	InOrder     *float64       `json:"in_order,omitempty"`
	Pause       *float64       `json:"pause,omitempty"`       // longest pause at the client, after the first byte
	PauseAt     *float64       `json:"pause_at,omitempty"`    // when that pause began
	Connections map[string]int `json:"connections,omitempty"` // seen by the origin, per link
	Requests    int            `json:"requests"`              // seen by the origin
	// from a link's return until it has carried backBytes again
	Back   *float64 `json:"back,omitempty"`
	CPU    float64  `json:"cpu,omitempty"`    // of the proxy, or of a downloader other than curl
	Joules float64  `json:"joules,omitempty"` // modelled, see joulesOf
	Error  string   `json:"error,omitempty"`

	origin      origin
	from, until time.Time // requests that begin in between belong to the measurement

	began    time.Time
	download netlab.Download
	tapes    []netlab.Tape // as of the end
}

// examine adds the results of the tapes and the client's output.
func (m *measurement) examine(size netlab.Bytes) {
	var first, last time.Time
	var half int64
	middle := m.began.Add(time.Duration(m.Seconds / 2 * float64(time.Second)))
	for _, t := range m.tapes {
		half += t.Sum(middle)
		if t.Last.IsZero() {
			continue
		}
		if first.IsZero() || t.Last.Before(first) {
			first = t.Last
		}
		if t.Last.After(last) {
			last = t.Last
		}
	}
	m.LinkDelta = last.Sub(first).Seconds()
	if len(m.download.Reads) == 0 {
		return
	}
	if half > 0 {
		share := 100 * float64(atClient(m.download.Reads, middle.Sub(m.began))) / float64(half)
		m.InOrder = &share
	}
	pause, at := m.download.LongestPause()
	seconds, when := pause.Seconds(), at.Seconds()
	m.Pause, m.PauseAt = &seconds, &when
}

// backBytes is the payload after which a returned link counts as in use; a packet that TCP repeats is smaller.
const backBytes = 50_000

// returned notes how long after its last return the named link, whose tape this is, was in use again, if it was. Events
// count from m.from.
func (m *measurement) returned(name string, tape netlab.Tape, events []netlab.Event) {
	for _, e := range slices.Backward(events) {
		if e.Link != name || !slices.Contains([]string{netlab.EventRestore, netlab.EventUp, netlab.EventRestoreAddrs},
			e.What) {
			continue
		}
		back := m.from.Add(e.At)
		before := tape.Sum(back)
		for step := back; step.Before(m.until); step = step.Add(tape.Step) {
			if tape.Sum(step)-before >= backBytes {
				took := step.Sub(back).Seconds()
				m.Back = &took
				return
			}
		}
		return
	}
}

// clockGrain is how far origins' clocks may be behind, since they do not read them for every request.
const clockGrain = 50 * time.Millisecond

// atClient returns how many bytes arrived by a time.
func atClient(reads []netlab.Read, by time.Duration) int64 {
	var sum int64
	for _, read := range reads {
		if read.At > by {
			break
		}
		sum += int64(read.N)
	}
	return sum
}

// count adds the entries of the origin's log that belong to the measurement; links names the link of a client's
// address.
func (m *measurement) count(requests []netlab.Request, links map[string]string) {
	during := slices.DeleteFunc(slices.Clone(requests), func(q netlab.Request) bool {
		return q.Began.Before(m.from.Add(-clockGrain)) || q.Began.After(m.until)
	})
	m.Connections, m.Requests = netlab.Connections(during, links), len(during)
}

// processCPU returns the processor time that a process has used, 0 if it is gone or pid is 0.
func processCPU(pid int) time.Duration {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, path := range threads {
		var running int64
		if text, err := os.ReadFile(path); err == nil {
			if _, err := fmt.Sscan(string(text), &running); err == nil {
				sum += time.Duration(running)
			}
		}
	}
	return sum
}
