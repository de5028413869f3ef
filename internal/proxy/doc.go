// Package proxy is the client's side of Tributary: an HTTP/1.1 forward proxy.
//
// A GET that package policy finds eligible goes to the engine (Getter), every other request in absolute-form is passed
// through (Plain), and CONNECT becomes a tunnel. Whichever way a request goes, the client sees the status, the fields and
// the bytes that it would have seen without a proxy; what is taken away or added is what RFC 9110 section 7.6 and RFC 9112
// demand, and nothing else.
//
// Invariants:
//  1. Method, path and query reach the origin byte for byte (RFC 9110 section 7.7), framing is always our own.
//  2. An answer that breaks off is made visibly incomplete: no last chunk, fewer bytes than Content-Length, or a reset.
//  3. Only the goroutine that serves a request writes to its client, interim answers included.
//  4. Nothing is dialed for a request that is refused.
//  5. No URL, field or key is logged above debug level; own answers repeat nothing of the request.
//
// One parser, that of net/http, reads what clients send. Where it is stricter than the rules (a bad escape in a path is
// answered with 400 before the handler sees it) or adds something (Cache-Control: no-cache next to Pragma: no-cache, of
// the same meaning; no Content-Type and Content-Length in a 304), that is accepted: a second parser in front of it would be
// how request smuggling begins.
//
// Concurrency: a Proxy is safe for concurrent use.
package proxy
