// Package sim runs transfers against links in virtual time: the machine of package transfer and the board of package
// health, the very code of the daemon, without goroutines, sockets or clocks. The same Spec gives the same Result and the
// same event log.
//
// The model is small and honest about its gaps. A link is a serial queue of bounded length with a rate (constant, ramping up,
// or a trace; changed by events) and half its round trip on either side, with jitter that keeps the order. A connection takes
// one round trip to open and sends by its congestion window: slow start, then CUBIC. A lost packet, by chance or because the
// queue is full, holds up the bytes behind it for a round trip and shrinks the window once. Bytes that meet a dead link are
// sent again after a timeout that doubles. The sender stops when the receiver does not read. Bytes move in steps of 16 KiB.
// There are no single packets, no acknowledgments that get lost, and no competing traffic.
//
// After every event the invariants of packages transfer and segment are checked, and an audit with an account of its own judges
// them: delivered bytes have arrived; a byte is asked for a second time only if its link is silent or its range is being cut,
// never a third time, but for the samples of spot checks, which are few; little is read for nothing; no usable link is
// idle while bytes are free within the window, unless the scheduler says why. A violation ends the run with an error.
//
// Compare and Classes put schedulers side by side, Limit is the bundling limit that they are measured by, and oracles are
// schedulers that know the future. docs/SIMULATOR.md compares the simulator with the lab, docs/SCHEDULERS.md shows the tables.
package sim
