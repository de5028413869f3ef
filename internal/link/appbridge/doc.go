// Package appbridge lets another program own the networks: an Android app, which may ask the system for Wi-Fi and mobile data
// at once, bind sockets to either and look names up over either, which this process may not do. The app lists the links,
// binds sockets that are passed to it, and resolves names. docs/APPBRIDGE.md is the protocol.
//
// Two connections to one Unix socket of the app: one carries lines of JSON both ways, on the other each message passes a socket
// (SCM_RIGHTS, unix(7)) and is answered by an error number. One more for each file that the app wants filled (Order). Snapshots
// only: the last message of the app counts.
//
// Invariants:
//  1. A socket that the app does not bind is never connected.
//  2. The app is not trusted with memory: lines, links and questions have limits. A malformed message ends the connection.
//  3. When it vanishes there are no more links, every question is answered by ErrGone, and Gone is closed.
//
// A Bridge is safe for concurrent use. Its goroutines end with Close or with the app, and Close waits for them.
package appbridge
