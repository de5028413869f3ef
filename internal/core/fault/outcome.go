package fault

// Outcome is how an attempt or a request ended.
type Outcome uint8

// The outcomes of an attempt. The comments describe how package transfer treats the missing bytes and the link.
const (
	Complete Outcome = iota // every byte of the response arrived
	Short                   // the body ended early: its prefix counts, the rest is re-queued
	Reset                   // the connection broke in mid-body: the prefix counts, the rest is re-queued
	// the connection ended before the head of the response: re-queued; may end pipelining on the link
	Unanswered
	// a reused connection closed before its first byte: re-queued, nobody's fault (RFC 9112 section 9.3.1)
	Stale
	Silence     // no bytes until the connection was given up: re-queued
	Unreachable // no connection: dial, DNS or TLS failed: link banned, re-queued
	Unbound     // the socket could not be bound to the link: link banned, reported once
	// a response that is not part of the object (403, 404, 302, a login page, ...): the link leaves the transfer
	Unwanted
	Denied  // the address may not be dialed over the link: the link leaves the transfer
	Busy    // 429 or 503: the link pauses for this transfer, fewer connections
	NoRange // 200 with the same validator: this node ignores Range, the link leaves the transfer
	Changed // another version: validator, total or coding differ, or 416: the link leaves the transfer
	// a 206 that was not requested (wrong start, beyond the end, no Content-Range, surplus body)
	BadRange
	// bytes differ from another link's under the same headers (spot check): the link leaves the transfer
	Differs
	Canceled // ended by the transfer itself
	NoSlot   // no connection: the host already has the maximum over this link; re-queued, nobody's fault
)

// The other outcomes of a request.
const (
	NoLink         = NoSlot + 1 + iota // no link is up that the request may use
	OffLink                            // the address belongs to an interface that is not a link
	Rebound                            // a public name led to a private address
	UpstreamDenied                     // the rules of an upstream proxy forbid the address
	UnknownName                        // DNS has no address
	SilentDNS                          // no DNS server answered in time
	BadCertificate                     // TLS: the certificate is invalid
	WrongClock                         // TLS: the certificate is not valid yet, by this machine's clock
	BadTLS                             // TLS: anything else
	PortClosed                         // the host refused the TCP connection
	NoRoute                            // the network reports that there is no route
	Timeout                            // no connection in time
	LinkLost                           // the only link that carried the request has stopped working
	Malformed                          // the response breaks the rules of HTTP
	Unknown                            // an error that is not the outcome of an attempt
)

// Blame says what caused an outcome.
type Blame uint8

// The causes of an outcome.
const (
	BlameNobody Blame = iota
	BlameLink
	BlameOrigin
	BlameLocal
)

func (b Blame) String() string {
	return [...]string{"nobody", "link", "origin", "local"}[b]
}

// String returns the name of the outcome, as used in metrics.
func (o Outcome) String() string { return rows[o].Name }

// Blame returns what caused the outcome.
func (o Outcome) Blame() Blame { return rows[o].Blame }

// Row returns the consequences of an outcome.
func (o Outcome) Row() Row { return rows[o] }
