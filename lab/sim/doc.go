// Package sim runs transfers over simulated links in virtual time. It uses the daemon's own code, the machine of
// package transfer and the board of package health, without goroutines, sockets or clocks. The same Spec gives the same
// Result and the same event log.
//
// The model is small, and its gaps are stated here. A link is a serial queue of bounded length with a rate (constant,
// ramping up, or a trace; changed by events) and half its round-trip time on either side, with jitter that keeps the
// order. A connection takes one round trip to open and sends within its congestion window: slow start, then CUBIC. A
// packet that is lost, by chance or because the queue is full, delays the bytes behind it by a round trip and shrinks
// the window once. Bytes lost on a dead link are sent again after a timeout that doubles. The sender stops when the
// receiver does not read. Bytes move in steps of 16 KiB: the simulator has neither single packets nor lost
// acknowledgments, and no competing traffic but Spec.Beside.
//
// After every event, Run checks the invariants of packages transfer and segment, and an audit with its own account
// checks that delivered bytes have arrived; that a byte is requested a second time only if its link is silent or its
// range is being cut, and never a third time, except for the few samples of spot checks; that few bytes are read and
// discarded; and that no usable link is idle while bytes are free within the window, unless the scheduler states a
// reason. A violation ends the run with an error.
//
// Compare and Classes compare schedulers, Limit returns the bundling limit that they are measured against, and oracles
// are schedulers that know the future. docs/SIMULATOR.md compares the simulator with the lab, docs/SCHEDULERS.md shows
// the tables.
package sim
