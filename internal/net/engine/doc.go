// Package engine runs transfers: it drives the state machine of package transfer with real connections.
//
// One loop goroutine owns a transfer and all of its mutable state. Each connection has a connection loop with two
// goroutines: one dials and sends, the other reads responses in order. They send events to the loop and wait for
// credit, but never for each other. The writer is the goroutine that serves the client: it gets bytes in order and
// reports its progress to the loop. Bytes are stored in reference-counted blocks.
//
//	          requests              events                in order
//	loop ---------------> conn ---------------> loop ---------------> writer --> client
//	  ^  <-- credit ---->  |                      ^                      |
//	  |                    v                      +----- delivered ------+
//	fleet, budget        origin
//
// Package opening uses the first responses to decide how to serve a GET; one run of the loop serves one attempt of it.
//
// The fleet holds the state of the links, per origin and for all origins (package health). It probes banned links, and
// tries other addresses before one origin's verdict counts for others (trial.go). The budget divides the memory for
// reordering among transfers. Both post to a loop's mailbox, which never blocks.
//
// The engine declares the interface through which it fetches (Opener, Conn); package origin implements it.
//
// Reasons: docs/decisions/blocks.md, reading.md, budget.md, scarce-memory.md.
package engine
