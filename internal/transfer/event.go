package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/estimate"
	"github.com/tributary-http/tributary/internal/fault"
	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events, with the fields that each uses.
const (
	Tick         EventKind = iota // the deadline has come
	LinkState                     // Link, State, Cause: as all transfers know it; New, Allowed: if the link has appeared just now
	Permitted                     // Link, Allowed: whether the policy lets it carry requests from now on
	Opened                        // Conn, RTT (0 = unknown), Reused, Multiplexed: a request behind an answer is answered
	OpenFailed                    // Conn, Outcome, OriginRefused: the origin itself refused, the link is well. After NoSlot comes a SlotFreed
	HeadReceived                  // Attempt, Range of the body, Size of the object, Close: the connection ends with this answer
	Read                          // Attempt, N
	Ended                         // Attempt, Outcome, RetryAfter; unless Complete its connection is gone
	ConnClosed                    // Conn: it ended while nothing was asked of it
	Delivered                     // N bytes at the next offset went to the client
	Scatter                       // from now on bytes are written as they come: none waits for its turn
	Granted                       // N = size of the reorder window from now on
	SlotFreed                     // Link: after OpenFailed with NoSlot: a connection may be opened again
	Sampled                       // Conn, Path: every 100 ms while the connection is open, where something is known
	Crowded                       // Link, N: so many bytes per second come over it for others, 0 = a packet now and then, -1 = nothing
	Paused                        // For: so long nothing was read, since the disk was behind: no silence of a link
	Compared                      // Attempt, Differs, N: its prefix was compared; what lies before offset N has gone to the client
)

// Event is one thing that happened.
type Event struct {
	Kind          EventKind
	Link          int8
	Conn          uint32
	Attempt       uint32
	State         health.State
	Cause         health.Cause
	Outcome       fault.Outcome
	Reused        bool
	Multiplexed   bool
	Close         bool
	OriginRefused bool
	Differs       bool // some byte of the prefix is not the one that another link delivered
	N             int64
	Size          int64
	Range         segment.Range
	RTT           time.Duration
	For           time.Duration
	Path          PathSample
	RetryAfter    time.Duration
	New           *LinkConfig // known facts about a link with the next number, nil if Link is known
	Allowed       bool        // the link may carry requests
}

// ActionKind is the kind of an Action.
type ActionKind uint8

// The kinds of actions, with the fields that each uses.
const (
	Open          ActionKind = iota // Link, Conn: dial, answer with Opened or OpenFailed
	Fetch                           // Link, Conn, Attempt, Range, Prefix, Tail, UpTo, Rule: ask on Conn, which may still be opening; read up to UpTo
	FetchAll                        // as Fetch, without a Range field: the client's own GET
	FetchAhead                      // as Fetch, before the first response has come: its head counts once that has
	Credit                          // Attempt, UpTo: it may read up to there
	Cut                             // Attempt, UpTo: its answer ends there, over HTTP/2 only. Ended follows as usual
	CloseConn                       // Conn: close it; no event follows for it or its attempts
	Keep                            // Conn: every byte asked of it was read; it may serve a later transfer. No event follows
	Want                            // N: ask the budget for a reorder window of N bytes
	Need                            // N: report to the budget that a window of N bytes is enough at the client's speed
	ReportSilent                    // Link: bytes are overdue
	ReportAlive                     // Link: it spoke again
	ReportExcused                   // Link: nothing is expected of it any more: its silence, if it was reported, shows nothing
	ReportFailed                    // Link, Cause: no connection although the origin is reachable, or no binding
	ReportHedged                    // Link: bytes that it owes were asked for elsewhere
	ReportDiffers                   // Link: its bytes are not those of the other links; it has left the transfer
	Forget                          // Link, Range: bytes that it delivered must not reach the client; they are fetched again
	Done                            // everything was delivered
	Fail                            // Outcome, Link, UpTo: the transfer ends here; of the delivered bytes, those before UpTo can be relied on
)

// Action is one thing to do. Prefix is the length of a spot check: the first bytes of Range are to be compared with those that
// other links deliver, and discarded. Of those that have come already, the link Tail has delivered the last ones, see Received;
// it is -1 if none have come. A Compared event reports the result as soon as both copies are complete, or differ.
type Action struct {
	Kind    ActionKind
	Link    int8
	Conn    uint32
	Attempt uint32
	Range   segment.Range
	Prefix  int64
	Tail    int8
	UpTo    int64
	N       int64
	Rule    schedule.Rule
	Cause   health.Cause
	Outcome fault.Outcome
}

// Result is the result of an event.
type Result struct {
	Do   []Action  // in this order; valid until the next Handle
	Next time.Time // Handle wants a Tick then if nothing happens before; zero = never

	Received Received // by a Read
	Ready    int64    // offset up to which bytes can be delivered
	Holds    int64    // part of the grant that the transfer cannot give back: its window, or the bytes beyond the next offset that are held or may come
}

// Received is the result of a read. It is zero for an attempt that is forgotten.
type Received struct {
	Keep  segment.Range // the wanted ones of the bytes; those before it (a prefix) and after it are to be discarded
	Fresh int64         // bytes that came for the first time
	Waste int64         // second copies, and bytes outside of Keep
	Tail  segment.Range // the end of Keep, with the end of the link's bytes before it: to be kept for later spot checks
}

// State is a snapshot of a transfer.
type State struct {
	Size   int64 // end of the requested range, or Unknown
	Offset int64 // next offset to be delivered
	Ready  int64 // bytes at the next offset that can be delivered
	Held   int64 // bytes received and not delivered
	Window int64 // reorder window in bytes

	Stood           time.Duration // for how long in all a usable link had nothing to do
	Received, Waste int64         // bytes of bodies; of these, second copies and bytes that nobody wanted

	Links []LinkInfo // valid until the next State
}

// LinkInfo is a link in one transfer.
type LinkInfo struct {
	Rate      float64         // goodput in bytes per second
	RTT       time.Duration   // 0 = unknown
	Usable    bool            // new ranges may be asked of it
	Busy      bool            // it is kept busy, or would be if another link did not hold it up
	Metered   bool            // bytes on it cost money
	Spared    schedule.Spared // why the goal does without it
	Got       int64           // bytes that it brought
	Gain      float64         // bytes that it brought, less those that others could have brought while it held them up
	Learned   estimate.Entry  // findings for later transfers
	Sustained float64         // see estimate.Rate
}
