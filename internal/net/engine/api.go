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
	// the client's end-to-end fields, Range and conditional fields included; package opening reads them
	Header http.Header
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
	// Body must be closed. Its WriteTo sends every byte in order; an error after the first byte means that the answer
	// must be made visibly incomplete (RFC 9112 section 8). Trailer is valid after io.EOF.
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

// Status is a snapshot for observers: metrics, `tributary status`, the live page and the app get these types as they
// are here, as JSON. Rates are bytes per second, times seconds.
type Status struct {
	Links     []LinkStatus
	Transfers []TransferStatus // by ID
	Budget    Memory
	Undivided int // running tunnels and requests that pass through; the engine does not know them
}

// LinkStatus is a link as observers see it. The engine counts the content of responses, including second copies; what
// it does not know is added to its rates and bytes above it, see [transport.Transport.Status].
type LinkStatus struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`            // "up", "suspect", "banned", "probing", "down"
	Reason  string  `json:"reason,omitempty"` // why it is in this state, "" when up
	Goodput float64 `json:"goodput_bytes_per_second"`
	RTT     float64 `json:"rtt_seconds"` // smoothed, 0 = not known
	Bytes   int64   `json:"bytes"`       // received since the start
	Waste   int64   `json:"waste_bytes"` // of these, second copies and bytes nobody wanted
	Bans    int64   `json:"bans"`

	// Tunnels and requests that pass through, and with UndividedBytes lanes to a relay, both directions.
	Undivided      int     `json:"undivided"`       // open now
	UndividedBytes int64   `json:"undivided_bytes"` // since the start, counted in Bytes
	UndividedRate  float64 `json:"-"`               // counted in Goodput

	// Energy that downloads have used on the link's radio according to the model, and the state of the radio; "" = the
	// radio is not known. Tunnels and requests that pass through are not counted.
	Joules float64 `json:"radio_joules,omitempty"`
	Radio  string  `json:"radio_state,omitempty"`

	// traffic in bytes that the link may still carry this month, or today if that is less; nil = no limit
	Left *int64 `json:"monthly_left_bytes,omitempty"`
	Used *Used  `json:"used,omitempty"` // nil = not counted, since there is no limit
}

// Used is the traffic of the account of a link in bytes, including headers. A limit of 0 means no limit.
type Used struct {
	Today      int64 `json:"today_bytes"`
	Month      int64 `json:"month_bytes"`
	DayLimit   int64 `json:"day_limit_bytes,omitempty"`
	MonthLimit int64 `json:"month_limit_bytes,omitempty"`
}

// Memory is the memory for reordering, of all transfers, in bytes.
type Memory struct {
	Total   int64 `json:"total_bytes"`
	Granted int64 `json:"granted_bytes"` // to transfers
	Held    int64 `json:"held_bytes"`    // currently in blocks
}

// TransferStatus is one running transfer for observers. Offsets count from the beginning of the object.
type TransferStatus struct {
	ID uint64 `json:"id"`
	// Host is the origin as the client named it, and Name the last part of the object's path. Only the client's user
	// may see them: the live page shows them, JSON leaves them out.
	Host, Name string `json:"-"`

	Size    int64       `json:"size"`         // -1 = unknown
	Offset  int64       `json:"head"`         // end of the delivered part
	Held    int64       `json:"held_bytes"`   // received beyond Offset
	Window  int64       `json:"window_bytes"` // reorder window
	Started time.Time   `json:"-"`
	Seconds float64     `json:"seconds"` // since Started
	Links   []LinkBytes `json:"links"`   // links that delivered something
	// links that are up, but banned for this origin or left out by the policy or this transfer's goal
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// links over which the origin limits each connection
	Limited []Limited `json:"limited,omitempty"`
}

// LinkBytes is the number of bytes that a link delivered for a transfer, including second copies.
type LinkBytes struct {
	Link  string `json:"link"`
	Bytes int64  `json:"bytes"`
}

// LeftOut is a link that is banned for an origin, or that the policy or a transfer's goal does not use.
type LeftOut struct {
	Link   string `json:"link"`
	Reason string `json:"reason"` // as in LinkStatus, a schedule.Spared, or a policy.Reason
	Text   string `json:"text"`   // the reason for people to read
}

// Limited is a link over which the origin limits the goodput of each connection.
type Limited struct {
	Link  string  `json:"link"`
	Each  float64 `json:"connection_bytes_per_second"`
	Conns int     `json:"connections"` // of the transfer, over this link
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
