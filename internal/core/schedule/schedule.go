package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Scheduler makes the decisions for one transfer. It may keep state; it is not safe for concurrent use.
type Scheduler interface {
	// Next returns the next decision. v is valid only during the call.
	Next(now time.Time, v *View) Decision
}

// View is a scheduler's view of a transfer.
type View struct {
	Object   segment.Range // range that the client gets; End is known
	Offset   int64         // next offset to be delivered in order
	Limit    int64         // first offset beyond the reorder window: no range may begin there or later
	Window   int64         // size of the reorder window in bytes
	Free     []segment.Range
	Attempts []Attempt // running attempts, in the order of their requests
	Links    []Link    // the links, by index
}

// Attempt is one fetch of a range on one link.
type Attempt struct {
	ID      uint32
	Link    int8
	Conn    uint32        // its connection
	Hedge   bool          // a second copy of another attempt's bytes
	Stolen  bool          // its tail is moving to another link
	Hedged  bool          // another attempt also fetches part of it: a third one may not
	HasHead bool          // a valid head has arrived: bytes follow
	Range   segment.Range // the bytes wanted from it
	Cursor  int64         // next offset it will deliver
	Asked   time.Time     // when the request was sent
	Last    time.Time     // when the last byte arrived; zero = none yet
	Silent  bool          // bytes are overdue
	Blocked bool          // it must not read further: the window is full
}

// Left returns the number of bytes that the attempt still has to deliver.
func (a *Attempt) Left() int64 { return a.Range.End - a.Cursor }

// Link is a transfer's view of a link.
type Link struct {
	Usable   bool          // new ranges may be requested on it
	Suspect  bool          // bytes are overdue; the link is then not Usable
	CanAsk   bool          // a request can be sent now, on an open connection or one that may be opened
	Blocked  bool          // all its attempts wait for the next offset to advance; CanAsk then means another connection
	Running  int           // attempts on it
	Asked    int64         // bytes that it still has to deliver
	Got      int64         // bytes that it delivered
	Rate     float64       // goodput in bytes per second, 0 = unknown
	Recalled bool          // Rate comes from earlier transfers: this one has not measured its own yet
	Peak     float64       // windowed maximum of Rate
	RTT      time.Duration // round-trip time without load; 0 = unknown
	Think    time.Duration // part of RTT that the origin spends before it answers
	// time that a new connection takes until its first answer, per answer of one that the origin closes; 0 = none
	Setup time.Duration
	Delay time.Duration // recent delay of an answer under load, from PING or the kernel; 0 = unknown or idle
	Each  float64       // bytes per second to which the origin limits each of its connections, 0 = it does not
	Conns int           // number of connections that it should have

	// Fields for goals.
	Optional bool          // the goal may do without it
	Radio    *energy.Radio // its energy cost; nil = unknown or none
	Silent   time.Duration // time since its last byte, in any transfer
	Spared   Spared        // why the goal does without it; the link is then not Usable
}

// Verb is the kind of a decision.
type Verb uint8

// The verbs.
const (
	Wait  Verb = iota // do nothing until the next event or Until
	Fetch             // request Range on Link
	Open              // open a connection on Link, so that it is warm when needed
)

// Rule says why a decision was made; metrics and tests read it.
type Rule uint8

// The reasons.
const (
	NothingToDo Rule = iota
	First            // a first range: nothing is known about the link
	Share            // the link's share of the rest
	Floor            // the share was less than the link has in flight
	Window           // limited to the link's share of the reorder window
	Rest             // the remainder was not worth another request
	Steal            // took the tail of a slower link's range
	Oversize         // cut a range that is far longer than its link's share
	HedgeCopy        // second copy of bytes that a silent link owes
	WholeRange       // a fixed share, once
	Warm             // a connection for later
	Piece            // a range of fixed length
	Half             // the link's part of the bytes in the window
	Measuring        // waits until every link has been measured
	OtherLink        // waits because another link is the one to use
	Ahead            // requested before the size of the object is known
	Reserve          // the rest of the object, in reserve
	Limited          // a range for a connection that the origin limits
)

var ruleNames = [...]string{
	"nothing", "first", "share", "floor", "window", "rest", "steal", "oversize", "hedge", "whole", "warm",
	"piece", "half", "measuring", "other_link", "ahead", "reserve",
	"limited",
}

func (r Rule) String() string { return ruleNames[r] }

// Decision is a scheduler's answer.
type Decision struct {
	Do    Verb
	Link  int8
	Range segment.Range
	From  uint32 // attempt whose tail Range is (or, with Hedge, whose bytes Range copies); 0 = Range is free
	Hedge bool   // From continues; the first copy of each byte counts
	Until time.Time
	Rule  Rule
}

// wait returns the decision of a scheduler that has nothing to do. A scheduler that leaves a link idle although it
// could fetch something also sets Rule.
func wait(until time.Time) Decision { return Decision{Do: Wait, Until: until} }

// Earlier returns the earlier of two times; zero means none, as in Decision.Until.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// FirstFree returns the first free range, if it begins inside the window.
func (v *View) FirstFree() (segment.Range, bool) {
	if len(v.Free) == 0 || v.Free[0].Start >= v.Limit {
		return segment.Range{}, false
	}
	return v.Free[0], true
}

// free returns the number of bytes that have not been requested.
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

// Newest returns the most recently requested attempt on link, or nil if there is none.
func (v *View) Newest(link int8) *Attempt {
	for i := len(v.Attempts) - 1; i >= 0; i-- {
		if a := &v.Attempts[i]; a.Link == link {
			return a
		}
	}
	return nil
}
