// Package engine runs transfers: it drives the state machine of package transfer with real connections.
//
// One loop goroutine owns a transfer and everything that can change in it. Per connection a connection loop has two goroutines:
// one dials and sends, one reads answers in order; they send events to the loop and wait for credit, never for each other. The
// writer is the goroutine that serves the client: it gets bytes in order and reports its progress to the loop. Bytes live in
// blocks that whoever uses them holds references to.
//
//	           asks                 events                in order
//	loop ---------------> conn ---------------> loop ---------------> writer --> client
//	  ^  <-- credit ---->  |                      ^                      |
//	  |                    v                      +----- delivered ------+
//	fleet, budget        origin
//
// Package opening decides from the first answers how to serve a GET; a run of the loop serves one attempt of it.
//
// The fleet holds the transfers' knowledge of the links, for each origin and for all (package health). It probes links that
// were banned, and before one origin's verdict counts for others it tries other addresses (trial.go). The budget shares memory
// for reordering among transfers. Both post to a loop's mailbox, which never blocks.
//
// The engine declares the interface through which it fetches (Opener, Conn); package origin implements it.
package engine
