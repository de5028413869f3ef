// Package intercept opens the TLS connections of programs that trust a local authority, so that the requests in them can be
// divided like any other.
//
// A program sends CONNECT to the proxy. An Interceptor looks at its ClientHello, makes a TLS connection to the origin and
// verifies it, and only then answers the program with a certificate of its own Authority. It offers the protocol that the origin
// chose. Everything else stays a tunnel, whose bytes nobody looks at:
//
//   - hosts that are not to be opened: those beyond Only, and those on the list in excluded.txt;
//   - what is not TLS, or names another host than the CONNECT did, or wants a protocol other than HTTP;
//   - origins that do not verify: the program sees their certificate itself and judges it by its own rules;
//   - origins that ask for a client certificate;
//   - programs that did not accept a certificate of the Authority: see Pins.
//
// Invariants:
//  1. No origin is hidden behind a good certificate unless its own one was verified for the same name.
//  2. The private key of an Authority made by New is never written anywhere.
//  3. What is remembered is bounded: leaves, verdicts, pins, and the hosts that are reported.
//
// Concurrency: an Interceptor and an Authority are safe for concurrent use.
package intercept
