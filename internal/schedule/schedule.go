package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/energy"
	"github.com/tributary-http/tributary/internal/segment"
)

// Scheduler decides for one transfer. It may keep state; it is not safe for concurrent use.
type Scheduler interface {
	// Next returns the next step. v is valid during the call only.
	Next(now time.Time, v *View) Decision
}

// View is a scheduler's view of a transfer.
type View struct {
	Object   segment.Range // range that the client gets; End is known
	Offset   int64         // next offset to be delivered in order
	Limit    int64         // first offset beyond the reorder window: no range may begin there or later
	Window   int64         // size of the reorder window in bytes
	Free     []segment.Range
	Attempts []Attempt // running, in the order in which they were asked
	Links    []Link    // by index
}

// Attempt is one fetch of a range on one link.
type Attempt struct {
	ID      uint32
	Link    int8
	Hedge   bool          // a second copy of another attempt's bytes
	Stolen  bool          // its tail is being moved to another link
	Hedged  bool          // another attempt fetches some of it, too: no third one may
	HasHead bool          // a valid head has come: bytes follow
	Range   segment.Range // wanted part of it
	Cursor  int64         // next offset it will deliver
	Asked   time.Time     // when the request was sent
	Last    time.Time     // when the last byte came, zero before
	Silent  bool          // bytes are overdue
	Blocked bool          // it may not read on: the window is full
}

// Left returns the bytes it has still to deliver.
func (a *Attempt) Left() int64 { return a.Range.End - a.Cursor }

// Link is a link as a transfer sees it.
type Link struct {
	Usable   bool          // new ranges may be asked of it
	Suspect  bool          // bytes are overdue; it is not Usable then
	CanAsk   bool          // a request can leave now, on a connection that is open or that may be opened
	Blocked  bool          // all that runs on it waits for the next offset to move on; CanAsk then means a further connection
	Running  int           // attempts on it
	Asked    int64         // bytes that it still has to deliver
	Got      int64         // bytes that it delivered
	Rate     float64       // goodput in bytes per second, 0 = unknown
	Recalled bool          // Rate is that of earlier transfers: this one has not shown its own yet
	Peak     float64       // its windowed maximum
	RTT      time.Duration // round trip without load, 0 = unknown
	Think    time.Duration // part of RTT that the origin needs before an answer
	Delay    time.Duration // of an answer under the load of a moment ago, by PING or the kernel; 0 = unknown or idle

	// For goals.
	Optional bool          // the goal may do without it
	Radio    *energy.Radio // what it costs; nil = not known, or nothing
	Silent   time.Duration // since its last byte, of whatever transfer
	Spared   Spared        // the goal does without it: it is not Usable
}

// Verb is the kind of a step.
type Verb uint8

// The verbs.
const (
	Wait  Verb = iota // nothing, until the next event or Until
	Fetch             // ask Link for Range
	Open              // open a connection on Link, so that it is warm when needed
)

// Rule says why a decision was made; metrics and tests read it.
type Rule uint8

// The reasons.
const (
	NothingToDo Rule = iota
	First            // nothing is known of the link: a first range
	Share            // the link's share of the rest
	Floor            // the share was less than the link has in flight
	Window           // cut down to the link's share of the reorder window
	Rest             // the remainder was not worth another request
	Steal            // took the tail of a slower link's range
	Oversize         // cut a range that is far longer than its link's share
	HedgeCopy        // second copy of bytes that a silent link owes
	WholeRange       // a fixed share, once
	Warm             // a connection for later
	Piece            // a range of fixed length
	Half             // the link's part of the bytes in the window
	Measuring        // waits until every link is measured
	OtherLink        // waits because another link is the one to use
	Ahead            // asked before the size of the object is known
)

var ruleNames = [...]string{
	"nothing", "first", "share", "floor", "window", "rest", "steal", "oversize", "hedge", "whole", "warm",
	"piece", "half", "measuring", "other_link", "ahead",
}

func (r Rule) String() string { return ruleNames[r] }

// Decision is a scheduler's answer.
type Decision struct {
	Do    Verb
	Link  int8
	Range segment.Range
	From  uint32 // attempt whose tail (or, with Hedge, copy) Range is; 0 = Range is free
	Hedge bool   // From continues; the first copy of each byte counts
	Until time.Time
	Rule  Rule
}

// wait is the answer of a scheduler with nothing to do. One that leaves a link idle though it could fetch something says why.
func wait(until time.Time) Decision { return Decision{Do: Wait, Until: until} }

// Earlier returns the earlier of two times; zero means none, as in Decision.Until.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// FirstFree returns the first free range that begins inside the window.
func (v *View) FirstFree() (segment.Range, bool) {
	if len(v.Free) == 0 || v.Free[0].Start >= v.Limit {
		return segment.Range{}, false
	}
	return v.Free[0], true
}

// free returns the number of bytes that nobody asked for.
func (v *View) free() (n int64) {
	for _, r := range v.Free {
		n += r.Len()
	}
	return n
}

// Best returns the usable link with the highest rate, or the first one while no rate is known; -1 if none is usable.
func (v *View) Best() int8 {
	b := int8(-1)
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable && (b < 0 || l.Rate > v.Links[b].Rate) {
			b = int8(i)
		}
	}
	return b
}

// Newest returns the attempt on link that was asked last, nil if there is none.
func (v *View) Newest(link int8) *Attempt {
	for i := len(v.Attempts) - 1; i >= 0; i-- {
		if a := &v.Attempts[i]; a.Link == link {
			return a
		}
	}
	return nil
}
