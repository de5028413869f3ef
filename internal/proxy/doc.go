// Package proxy is the client's side of Tributary: an HTTP/1.1 forward proxy, and a SOCKS5 server for tunnels.
//
// A GET goes to the engine (Getter) unless package opening finds a reason against it, every other request in absolute-form is
// passed through (PassThrough), and CONNECT becomes a tunnel. Whichever way a request goes, the client sees the status, the
// fields and the bytes that it would have seen without a proxy; the proxy removes or adds only what RFC 9110 section 7.6 and
// RFC 9112 demand.
//
// Invariants:
//  1. Method, path and query reach the origin byte for byte (RFC 9110 section 7.7), framing is always our own.
//  2. An answer that breaks off is made visibly incomplete: no last chunk, fewer bytes than Content-Length, or a reset.
//  3. Only the goroutine that serves a request writes to its client, interim answers included.
//  4. Nothing is dialed for a request that is refused.
//  5. No URL, field or key is logged above debug level; answers of the proxy's own repeat nothing of the request.
//
// One parser, that of net/http, reads what clients send: a second one in front of it would invite request smuggling. The
// behaviour of net/http is accepted where it harms nobody: it answers a bad escape in a path with 400, adds Cache-Control:
// no-cache next to Pragma: no-cache, which means the same, sends a 304 without Content-Type and Content-Length, and hides the
// fields that an origin nominates in a Connection field next to close.
//
// Concurrency: a Proxy is safe for concurrent use.
package proxy
