package fault

// Outcome is how an attempt or a request ended.
type Outcome uint8

// The ends of an attempt. The comment says how package transfer treats the missing bytes and the link.
const (
	Complete    Outcome = iota // every byte of the response arrived
	Short                      // the body ended early: re-queued, the prefix counts
	Reset                      // the connection broke in mid-body: re-queued, the prefix counts
	Unanswered                 // the connection ended before this request's head: re-queued; too early = no more pipelining
	Stale                      // a reused connection closed before its first byte: re-queued, nobody's fault (RFC 9112 section 9.3.1)
	Silence                    // sent nothing until the connection was given up: re-queued
	Unreachable                // no connection: dial, DNS or TLS failed: link banned, re-queued
	Unbound                    // the socket could not be bound to the link: link banned, said once
	Unwanted                   // a response that is not part of the object (403, 404, 302, a login page, ...): the link leaves the transfer
	Denied                     // the address may not be dialed over the link: the link leaves the transfer
	Busy                       // 429 or 503: the link pauses for this transfer, fewer connections
	NoRange                    // 200 with the same validator: this node ignores Range, the link leaves the transfer
	Changed                    // another version: validator, total or coding differ, or 416: the link leaves the transfer
	BadRange                   // a 206 that was not asked for (wrong start, beyond the end, no Content-Range, surplus body)
	Differs                    // other bytes than another link's under the same headers (a spot check): the link leaves the transfer
	Canceled                   // ended by the transfer itself
	NoSlot                     // no connection, since the host has as many over this link as it may have: re-queued, nobody's fault
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
	BadTLS                             // TLS: anything else
	PortClosed                         // the host refused the TCP connection
	NoRoute                            // the network says that it leads nowhere
	Timeout                            // no connection in time
	LinkLost                           // the only link that carried the request has stopped working
	Unknown                            // an error that no attempt ended with
)

// Blame says what caused an outcome.
type Blame uint8

// Whose fault an outcome is.
const (
	BlameNobody Blame = iota
	BlameLink
	BlameOrigin
	BlameLocal
)

func (b Blame) String() string {
	return [...]string{"nobody", "link", "origin", "local"}[b]
}

// String returns the name of an outcome, as metrics have it.
func (o Outcome) String() string { return rows[o].Name }

// Blame returns what caused the outcome.
func (o Outcome) Blame() Blame { return rows[o].Blame }

// Row returns the consequences of an outcome.
func (o Outcome) Row() Row { return rows[o] }
