// Package appbridge lets another program own the networks: an Android app. The app may ask the system for Wi-Fi and
// mobile data at once, bind sockets to either and look up names over either, which this process may not do. The app
// lists the links, binds sockets that are passed to it, and resolves names. docs/APPBRIDGE.md describes the protocol.
//
// There are two connections to one Unix socket of the app. One carries lines of JSON both ways; on the other, each
// message passes a socket (SCM_RIGHTS, unix(7)) and is answered with an error number. Each file that the app orders has
// one more connection (Order). Messages of the app are complete snapshots: only the last one counts.
//
// Invariants:
//  1. A socket that the app does not bind is never connected.
//  2. The app cannot make this process use unbounded memory: lines, links and queries have limits. A malformed message
//     ends the connection.
//  3. When the app vanishes, there are no more links, every question is answered by ErrGone, and Gone is closed.
//
// A Bridge is safe for concurrent use. Its goroutines end with Close or with the app, and Close waits for them.
package appbridge
