// Package origin fetches from origins: ranged GETs on connections that one link owns, and pass-through.
//
// A Pool opens connections for package engine. A connection is dialed over one link and used by one transfer at a time;
// requests may be pipelined on it. Where TLS chooses HTTP/2 (ALPN), each is a stream and the answers still come in order. Every
// answer is judged before a byte of it is used: [Identify] classifies the first answer of a transfer and decides whether other
// answers may be joined to it, [Check] compares every later answer with that (RFC 9110 sections 13.1.5, 14.4 and 15.3.7). Both
// are pure.
//
// Invariants:
//  1. One call of Send is one request on the wire; nothing is retried here, so a ledger of attempts is complete.
//  2. A RangeResponse to a RangeRequest with Want comes without error only if its body bytes are bytes of that version at that range.
//  3. No body read gives a byte beyond the range of the answer.
//  4. A connection is used again only if every answer on it was read to its end (or, over HTTP/2, cut or cancelled) and nothing
//     arrived since.
//  5. Pass-through (PassThrough) and transfers share no connection, and a Pinned shares its own with nobody.
//
// HTTP/1.1 answers are parsed by net/http alone: a second parser in front of it would invite smuggling. HTTP/2 frames and field
// blocks are read by golang.org/x/net/http2; what they mean is decided here (see session). Fields that net/http hides (a
// Content-Length next to a Transfer-Encoding, the Connection field beside a close, a Cache-Control that it adds) are looked up in
// a copy of the raw head.
//
// Concurrency: Pool and PassThrough are safe for concurrent use; for a connection see engine.Conn. There are no timeouts here
// but that of idle connections: the engine knows which requests are late.
package origin
