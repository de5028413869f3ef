// Package intercept opens the TLS connections of programs that trust a local authority, so that the requests in them
// can be divided like any other.
//
// A program sends CONNECT to the proxy. An Interceptor looks at its ClientHello, opens a TLS connection to the origin
// and verifies it, and only then answers the program with a certificate of its own Authority. It offers the protocol
// that the origin chose. Everything else stays a tunnel, whose bytes are not inspected:
//
//   - hosts that must not be opened: those outside of Only, and those listed in excluded.txt;
//   - connections that are not TLS, or name another host than the CONNECT did, or ask for a protocol other than HTTP;
//   - origins whose certificate cannot be verified: the program sees it itself and applies its own rules;
//   - origins that ask for a client certificate;
//   - programs that rejected a certificate of the Authority: see Pins.
//
// Invariants:
//  1. A program gets a certificate of the Authority only if the origin's own was verified for the same name.
//  2. The private key of an Authority made by New is never written anywhere.
//  3. All caches are bounded: leaf certificates, verdicts, pins, and reported hosts.
//
// Concurrency: an Interceptor and an Authority are safe for concurrent use.
//
// Reasons: docs/decisions/opened-tunnels.md.
package intercept
