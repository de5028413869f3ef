// Package origin fetches ranges from origins, on connections that one link owns.
//
// A Pool opens connections for package engine. A connection is dialed over one link and used by one transfer at a time;
// requests may be pipelined on it. If TLS negotiates HTTP/2 (ALPN), each request is a stream, and responses are still
// delivered in order. Every response is checked before any byte of it is used. [Identify] classifies the first response
// of a transfer and decides whether other responses may be joined to it; [Check] compares every later response with it
// (RFC 9110 sections 13.1.5, 14.4 and
// 15.3.7). Both are pure.
//
// Invariants:
//  1. One call of Send sends one request; nothing is retried here, so a ledger of attempts is complete.
//  2. A RangeResponse to a RangeRequest with Want is returned without error only if its body has the bytes of that
//     version at that range.
//  3. Reading a body never returns bytes beyond the range of the response.
//  4. A connection is reused only if every response on it was read to its end (or, over HTTP/2, cut or cancelled) and
//     nothing has arrived since.
//
// Only net/http parses HTTP/1.1 responses: a second parser in front of it would invite smuggling.
// golang.org/x/net/http2 reads HTTP/2 frames and field blocks, and this package interprets them (see session). Fields
// that net/http hides (a Content-Length next to a Transfer-Encoding, the Connection field next to a close, a
// Cache-Control that it adds) are looked up in a copy of the raw head.
//
// Concurrency: a Pool is safe for concurrent use; for a connection see engine.Conn. The only timeout here is the one
// for idle connections: the engine decides which requests are late.
//
// Reasons: docs/decisions/http2.md, http1-heads.md, frame-counts.md.
package origin
