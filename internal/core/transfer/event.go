package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events, with the fields that each uses.
const (
	Tick EventKind = iota // the deadline has passed
	// Link, State, Cause: the shared state of a link; New, Allowed: only for one that has appeared
	LinkState
	// Link, Allowed: whether the policy lets it carry requests from now on; Spare: it would if another left. A Tick
	// follows
	Permitted
	Opened // Conn, RTT (0 = unknown), Reused, Multiplexed: pipelined requests are answered
	// Conn, Outcome, OriginRefused: the origin refused; the link works. SlotFreed follows NoSlot
	OpenFailed
	// Attempt, Range of the body, Size of the object, Close: the connection ends after this answer
	HeadReceived
	Read // Attempt, N
	// Attempt, Outcome, RetryAfter, Stays; its connection is gone unless Complete or Stays
	Ended
	ConnClosed // Conn: it closed while it was idle
	Delivered  // N bytes at the next offset went to the client
	Scatter    // from now on bytes are written as they arrive; none waits for its turn
	Granted    // N = size of the reorder window from now on
	SlotFreed  // Link: a connection may be opened again, after an OpenFailed with NoSlot
	// Conn, Path: every SampleEvery while the connection is open, if the state of its path is known
	Sampled
	// Link, N: other traffic over it, in bytes per second; 0 = an occasional packet, -1 = none
	CrossTraffic
	// For: how long nothing was read because the disk was behind; this is not silence of a link
	Paused
	Compared // Attempt, Differs, N: its bytes were compared; the client has those before offset N
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
	Stays         bool // other requests on the connection are not affected, over HTTP/2
	Differs       bool // some byte differs from the one that another link delivered
	N             int64
	Size          int64
	Range         segment.Range
	RTT           time.Duration
	For           time.Duration
	Path          PathSample
	RetryAfter    time.Duration
	New           *LinkConfig // known facts about a new link, which has the next number; nil if Link is known
	Allowed       bool        // the link may carry requests
	Spare         bool        // see LinkConfig
}

// ActionKind is the kind of an Action.
type ActionKind uint8

// The kinds of actions, with the fields that each uses.
const (
	Open      ActionKind = iota // Link, Conn: dial, answer with Opened or OpenFailed
	OpenApart                   // as Open, but a new connection for one HTTP/1.1 response that is hardly read
	// Link, Conn, Attempt, Range, Prefix, Tail, UpTo, Rule: ask on Conn, which may still be opening; read up to UpTo
	Fetch
	FetchAll // as Fetch, without a Range field: the client's own GET
	// as Fetch, but before the first response arrived: its own head counts only after that
	FetchAhead
	// Link, Attempt, Range: the end of its Tail with what others deliver from now on. Compared names this Attempt
	Compare
	Credit    // Attempt, UpTo: it may read up to there
	Cut       // Attempt, UpTo: end its answer there, over HTTP/2 only. Ended follows as usual
	CloseConn // Conn: close it; no event follows for it or its attempts
	// Conn: every requested byte was read; it may serve a later transfer. No event follows
	Keep
	Want             // N: ask the budget for a reorder window of N bytes
	Need             // N: report to the budget that a window of N bytes is enough at the client's speed
	ReportSilent     // Link: bytes are overdue
	ReportAlive      // Link: it delivers again
	ReportNothingDue // Link: nothing more is expected of it, so a reported silence proves nothing
	ReportFailed     // Link, Cause: no connection although the origin is reachable, or no binding
	ReportHedged     // Link: bytes that it owes were requested over another link
	ReportDiffers    // Link: its bytes differ from those of the other links; it left the transfer
	// Link, Range: bytes that it delivered must not reach the client; they are fetched again
	Forget
	Done // everything was delivered
	// Outcome, Link, UpTo: the transfer ends; only the delivered bytes before UpTo are reliable
	Fail
)

// Action is one thing that the caller must do. Prefix is the length of a spot check: the first bytes of Range are to be
// compared with those that other links deliver, and discarded. Tail is the link that delivered the last of those that
// have already arrived (see Received), -1 if none have. A Compared event reports the result as soon as both copies are
// complete, or differ.
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
	Next time.Time // when Handle wants a Tick if nothing happens before; zero = never
	Ask  bool      // a link left or came back: the policy may allow others now. A Tick follows its answer

	Received Received // result of a Read
	Ready    int64    // offset up to which bytes can be delivered
	// part of the grant to be kept: the window, or bytes beyond the next offset that are held or may arrive
	Holds int64
}

// Received is the result of a read. It is zero for a forgotten attempt.
type Received struct {
	Keep  segment.Range // range of the wanted bytes; those before it (a prefix) and after it are to be discarded
	Fresh int64         // bytes that arrived for the first time
	Waste int64         // second copies, and bytes outside of Keep
	Tail  segment.Range // last bytes of the link in one piece: to be kept for later spot checks
}

// State is a snapshot of a transfer.
type State struct {
	Size   int64 // end of the requested range, or Unknown
	Offset int64 // next offset to be delivered
	Ready  int64 // bytes at the next offset that can be delivered
	Held   int64 // bytes received and not delivered
	Window int64 // reorder window in bytes

	Stood           time.Duration // total time in which a usable link had nothing to do
	Received, Waste int64         // bytes of bodies; of these, second copies and bytes that nobody wanted

	Links []LinkInfo // valid until the next State
}

// LinkInfo is a link in one transfer.
type LinkInfo struct {
	Rate    float64         // goodput in bytes per second
	RTT     time.Duration   // 0 = unknown
	Usable  bool            // new ranges may be requested over it
	Busy    bool            // it is kept busy, or would be if another link did not hold it up
	Metered bool            // bytes on it cost money
	Spared  schedule.Spared // why the goal does without it
	Got     int64           // bytes that it delivered
	// bytes that it delivered, less those that others could have delivered while it held them up
	Gain      float64
	Learned   estimate.Entry // findings for later transfers
	Sustained float64        // see estimate.Rate
	Conns     int            // its connections
}
