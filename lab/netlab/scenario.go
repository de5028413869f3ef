package netlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Scenario describes a lab: its links, the objects of its origin and what happens to the links over time.
type Scenario struct {
	Name       string // of its file, without the extension
	About      string
	Seed       uint64  // of loss and jitter
	Congestion string  // TCP congestion control of both ends, "" = the system's
	MPTCP      bool    // let MPTCP connections use every link
	Objects    []Bytes // sizes of the objects that the origin serves, named by their size: /50MB
	Links      []LinkSpec
	Events     []Event
}

// LinkSpec describes one link.
type LinkSpec struct {
	Name     string // of the client's interface, at most 13 bytes
	Down, Up Shape  // from the server to the client, and back
}

// Symmetric returns a link of one rate in both directions; the RTT is split evenly.
func Symmetric(name string, rate BitRate, rtt time.Duration) LinkSpec {
	s := Shape{Rate: rate, Delay: rtt / 2}
	return LinkSpec{Name: name, Down: s, Up: s}
}

// What an Event does.
const (
	EventBlackhole    = "blackhole"     // packets vanish, the interface stays up
	EventRestore      = "restore"       // ends a blackhole
	EventDown         = "down"          // the client's interface goes down
	EventUp           = "up"            // the interface comes up again, with addresses and routes
	EventRemoveAddrs  = "remove-addrs"  // the client's interface loses its addresses
	EventRestoreAddrs = "restore-addrs" // the interface gets them back
	// both directions change to the rate, rtt, jitter, loss, queue or ramp that are given
	EventShape = "shape"
)

var eventKinds = []string{
	EventBlackhole, EventRestore, EventDown, EventUp, EventRemoveAddrs, EventRestoreAddrs, EventShape,
}

// Event is something that happens to a link.
type Event struct {
	At   time.Duration // after the start of the program in the lab
	Link string
	What string
	ShapeChange
}

// ShapeChange holds changes of a Shape; nil fields stay unchanged.
type ShapeChange struct {
	Rate   *BitRate
	Trace  *string        // path of a file, relative to the scenario's
	RTT    *time.Duration // Delay is half of it
	Jitter *time.Duration
	Loss   *Share
	Queue  *Queue
	Ramp   *time.Duration

	trace *Trace // read from the file
}

// load reads the trace, if one is named.
func (c *ShapeChange) load(dir string) (err error) {
	if c.Trace != nil {
		path := *c.Trace
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		c.trace, err = LoadTrace(path)
	}
	return err
}

func (c *ShapeChange) apply(s *Shape) {
	if c.Rate != nil {
		s.Rate, s.Trace = *c.Rate, nil
	}
	if c.trace != nil {
		s.Trace = c.trace
	}
	if c.RTT != nil {
		s.Delay = *c.RTT / 2
	}
	if c.Jitter != nil {
		s.Jitter = *c.Jitter
	}
	if c.Loss != nil {
		s.Loss = *c.Loss
	}
	if c.Queue != nil {
		s.Queue = *c.Queue
	}
	if c.Ramp != nil {
		s.Ramp = *c.Ramp
	}
}

// scenarioFile is the form of a scenario in TOML. The keys of a link apply to both directions; its tables down and up
// override them.
type scenarioFile struct {
	About      string
	Seed       uint64
	Congestion string
	MPTCP      bool
	Objects    []Bytes
	Link       []struct {
		Name string
		ShapeChange
		Down, Up ShapeChange
	}
	Event []Event
}

// Load reads a scenario file.
func Load(path string) (Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	sc, err := parse(string(text), filepath.Dir(path))
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario %s: %w", path, err)
	}
	sc.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return sc, nil
}

func parse(text, dir string) (Scenario, error) {
	var f scenarioFile
	meta, err := toml.Decode(text, &f)
	if err != nil {
		return Scenario{}, err
	}
	if keys := meta.Undecoded(); len(keys) > 0 {
		return Scenario{}, fmt.Errorf("unknown keys %v", keys)
	}
	sc := Scenario{
		About:      f.About,
		Seed:       f.Seed,
		Congestion: f.Congestion,
		MPTCP:      f.MPTCP,
		Objects:    f.Objects,
		Events:     f.Event,
	}
	for _, l := range f.Link {
		spec := LinkSpec{Name: l.Name}
		for _, c := range []*ShapeChange{&l.ShapeChange, &l.Down, &l.Up} {
			if err := c.load(dir); err != nil {
				return Scenario{}, fmt.Errorf("link %s: %w", l.Name, err)
			}
		}
		l.ShapeChange.apply(&spec.Down)
		l.ShapeChange.apply(&spec.Up)
		l.Down.apply(&spec.Down)
		l.Up.apply(&spec.Up)
		sc.Links = append(sc.Links, spec)
	}
	for i := range sc.Events {
		if err := sc.Events[i].load(dir); err != nil {
			return Scenario{}, fmt.Errorf("event at %s: %w", sc.Events[i].At, err)
		}
	}
	slices.SortStableFunc(sc.Events, func(a, b Event) int { return int(a.At - b.At) })
	return sc, sc.Validate()
}

var linkName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,12}$`)

// maxLinks is the limit of the addressing.
const maxLinks = 250

// Validate returns an error that lists everything wrong with the scenario.
func (sc Scenario) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(sc.Links) == 0 || len(sc.Links) > maxLinks {
		bad("want 1 to %d links, not %d", maxLinks, len(sc.Links))
	}
	names := map[string]bool{"lo": true}
	for _, l := range sc.Links {
		if !linkName.MatchString(l.Name) || names[l.Name] {
			bad("link %q: want a name of its own of at most 13 letters and digits", l.Name)
		}
		names[l.Name] = true
		if err := errors.Join(l.Down.Validate(), l.Up.Validate()); err != nil {
			bad("link %s: %w", l.Name, err)
		}
	}
	for _, e := range sc.Events {
		if !names[e.Link] || e.Link == "lo" {
			bad("event at %s: there is no link %q", e.At, e.Link)
		}
		if !slices.Contains(eventKinds, e.What) {
			bad("event at %s: what = %q, want one of %s", e.At, e.What, strings.Join(eventKinds, ", "))
		}
		if e.At < 0 {
			bad("event at %s: the time must not be negative", e.At)
		}
	}
	for _, size := range sc.Objects {
		if size <= 0 {
			bad("objects: want sizes above 0, not %s", size)
		}
	}
	return errors.Join(errs...)
}
