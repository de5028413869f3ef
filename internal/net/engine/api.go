package engine

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// ErrNoLink says that no link that the request may use is up.
var ErrNoLink = errors.New("no usable link is up")

// ErrCosts says that a link now costs money, which the request may not spend.
var ErrCosts = errors.New("the link costs money now, which was not allowed")

// Request is a client's GET that may become a transfer.
type Request struct {
	Target Target
	Header http.Header // the client's end-to-end fields, Range and conditional fields included; package opening reads them
	Options

	// Interim, if not nil, gets the interim answers (1xx) of the first attempt before Get returns.
	Interim func(status int, h http.Header)
}

// Response is the response that the client would have got without the proxy.
type Response struct {
	Status        int
	Header        http.Header // as the origin sent it, hop-by-hop fields included; the caller may change it
	ContentLength int64       // -1 if unknown
	// version that the content belongs to: only content of the same version may be joined to it later
	ID Identity
	// Body must be closed. Its WriteTo sends every byte in order; an error after the first byte means that the answer must
	// be made visibly incomplete (RFC 9112 section 8). Trailer is valid after io.EOF.
	Body    Body
	Trailer http.Header
}

// Body is the content of a Response. WriteAtTo writes it to w instead of returning it from Read: each byte goes to its
// offset, beginning at w's offset 0, in the order in which bytes arrive, so that none waits in memory. It returns how
// many bytes were written from offset 0 on without a gap. It may be called once, before anything is read. After each
// write it calls progress, if not nil, with the number of bytes written so far and the number of those without a gap.
type Body interface {
	io.ReadCloser
	io.WriterTo
	WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (prefix int64, err error)
}

// LinkStatus is a link as observers see it.
type LinkStatus struct {
	Name    string
	State   string        // "up", "suspect", "banned", "probing", "down"
	Cause   string        // why it is in this state, "" when up
	Goodput float64       // first-copy body bytes per second, all transfers
	RTT     time.Duration // smoothed
	Bytes   int64         // body bytes received since start
	Waste   int64         // of these, second copies and bytes nobody wanted
	Bans    int64

	// Energy that downloads have used on the link's radio according to the model, and the state of the radio, if it is
	// known. Tunnels and requests that pass through are not counted.
	Joules float64
	Radio  string // "" = not known

	// Tunnels and requests that pass through, both directions. The engine does not know them.
	Undivided      int     // open now
	UndividedBytes int64   // carried since start
	UndividedRate  float64 // bytes per second
}

// Status is a snapshot of the engine for observers.
type Status struct {
	Links     []LinkStatus
	Transfers []TransferStatus
	Budget    int64 // bytes that may be held for reordering, all transfers
	Granted   int64 // of these, granted to transfers
	Held      int64 // of these, currently in blocks
	Undivided int   // running tunnels and requests that pass through; the engine does not know them
}

// TransferStatus is one running transfer for observers.
type TransferStatus struct {
	ID uint64
	// the origin as the client named it; the last part of the object's path. Only its user may see them
	Host, Name   string
	Size, Offset int64 // Size -1 = unknown
	Window       int64 // reorder window in bytes
	Held         int64 // bytes received beyond Offset
	Started      time.Time
	Links        []LinkBytes // links that delivered something
	// links that are up, but banned for this origin or left out by the policy or this transfer's goal
	LeftOut []LeftOut
}

// LinkBytes is the number of bytes that a link delivered for a transfer, including second copies.
type LinkBytes struct {
	Name  string
	Bytes int64
}

// LeftOut is a link that is banned for an origin, or that the policy or a transfer's goal does not use.
type LeftOut struct {
	Name  string
	Cause string // as in LinkStatus, a schedule.Spared, or a policy.Reason
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	EventTransferStarted EventKind = iota // Transfer
	// Transfer, Reason = result ("ok", "client_gone", "origin", "link", "local"), Bytes, Waste, Took, Ended = its last
	// status
	EventTransferEnded
	EventPassedThrough // Reason = why the GET did not become a transfer
	EventDecision      // Transfer, Link, Reason = the scheduler's
	EventLinkState     // Link, State, Reason: for everybody
	// Link, State, Reason, Origin: for transfers from that origin, global verdicts included
	EventOriginState
	EventHedge        // Transfer, Link = the link whose bytes another one takes over, Reason
	EventReceived     // Transfer, Link, Bytes, Waste = duplicates among them
	EventAttemptEnded // Transfer, Link, Reason, Took
	// Transfer, Link = the one that left the transfer: its bytes differ from the others'
	EventSpotCheckFailed
)

// Event is sent to observers. Observers only listen and must not block: code that acts on transfers or links has its
// own callback in Config.
type Event struct {
	Kind     EventKind
	At       time.Time
	Transfer uint64
	Link     string
	State    string
	Reason   string
	Bytes    int64
	Waste    int64
	Took     time.Duration
	Origin   string // "host:port"
	Ended    *TransferStatus
}

// Observer listens to events.
type Observer interface {
	Observe(Event)
}
