package transfer

// Outcome says how an attempt ended.
type Outcome uint8

// The ends of an attempt. The comment says what the machine does with the bytes that are missing and with the link.
const (
	Complete    Outcome = iota // every byte of the response arrived
	Short                      // the body ended early: re-queued, the prefix counts
	Reset                      // the connection broke in mid-body: re-queued, the prefix counts
	Unanswered                 // the connection ended before this request's head: re-queued; too early = no more pipelining
	Stale                      // a reused connection closed before its first byte: re-queued, nobody's fault (RFC 9112 section 9.3.1)
	Silence                    // gave no byte for so long that the connection was given up: re-queued
	Unreachable                // no connection: dial, DNS or TLS failed: link banned, re-queued
	Unbound                    // the socket could not be bound to the link: link banned, said once
	Unwanted                   // an answer that is no part of the object (403, 404, 302, a login page, ...), or an address that may not be dialed:
	// the link leaves this transfer
	Busy     // 429 or 503: the link pauses for this transfer, fewer connections
	NoRange  // 200 with the same validator: this node ignores Range, the link leaves this transfer
	Changed  // another version: validator, total or coding differ, or 416: the link leaves this transfer
	BadRange // a 206 that was not asked for (wrong start, beyond the end, no Content-Range, surplus body)
	Canceled // ended by the machine itself
	NoSlot   // no connection, since the host has as many over this link as it may have: re-queued, nobody's fault
)

var outcomeNames = [...]string{
	"complete", "short", "reset", "unanswered", "stale", "silent", "unreachable", "unbound", "refused", "busy", "no_range",
	"changed", "bad_range", "canceled", "no_slot",
}

func (w Outcome) String() string { return outcomeNames[w] }

// Blame says whose fault an error is.
type Blame uint8

// Who is to blame for an error.
const (
	BlameNobody Blame = iota
	BlameLink
	BlameOrigin
	BlameClient
	BlameLocal
)

var blameNames = [...]string{"nobody", "link", "origin", "client", "local"}

func (b Blame) String() string { return blameNames[b] }

// Blame returns who is to blame for an attempt that ended so.
func (w Outcome) Blame() Blame {
	switch w {
	case Complete, Canceled, Stale:
		return BlameNobody
	case Short, Reset, Unanswered, Silence, Unreachable:
		return BlameLink
	case Unbound, NoSlot:
		return BlameLocal
	default:
		return BlameOrigin
	}
}
