// Package proxy is the client's side of Tributary: an HTTP/1.1 forward proxy, and a SOCKS5 server for tunnels.
//
// A GET goes to the engine (Getter) unless package opening finds a reason against it. Every other request in
// absolute-form is passed through (PassThrough), and CONNECT becomes a tunnel. In all cases, the client sees the
// status, the fields and the bytes that it would have seen without a proxy; the proxy removes or adds only what RFC
// 9110 section 7.6 and RFC 9112 demand.
//
// Invariants:
//  1. Method, path and query reach the origin byte for byte (RFC 9110 section 7.7), framing is always our own.
//  2. The client can see that an interrupted response is incomplete: the last chunk is missing, there are fewer bytes
//     than Content-Length, or the connection is reset.
//  3. Only the goroutine that serves a request writes to its client, including interim responses.
//  4. The proxy does not dial for a request that it refuses.
//  5. URLs, fields and keys are not logged above debug level, and the proxy's own responses do not repeat parts of the
//     request.
//
// Only net/http parses what clients send: a second parser in front of it would invite request smuggling. The behaviour
// of net/http is accepted where it is harmless: it responds to a bad escape in a path with 400, adds Cache-Control:
// no-cache next to Pragma: no-cache, which means the same, sends a 304 without Content-Type and Content-Length, and
// hides the fields that an origin nominates in a Connection field next to close.
//
// Concurrency: a Proxy is safe for concurrent use.
//
// Reasons: docs/decisions/untrusted-links.md.
package proxy
