// Package sim runs transfers against links in virtual time: the machine of package transfer and the board of package
// health, the very code of the daemon, without goroutines, sockets or clocks. The same Spec gives the same Result and the
// same event log.
//
// The model is small and honest about what it leaves out. A link is a serial queue with a rate (which may ramp up or be
// changed by events) and half its round trip on either side. A connection takes one round trip to open, sends in slow
// start until its window exceeds what the link holds, and stops when the receiver does not read. Bytes that meet a dead
// link are lost and sent again after a timeout that doubles with each loss. There is no congestion avoidance, no random
// loss and no jitter.
//
// After every event the invariants of packages transfer and segment are checked, and an audit with an account of its own
// judges them: what is delivered has come; a byte is asked for a second time only if its link is silent or its range is
// being cut, never a third time; little is read for nothing; no usable link is idle while bytes are free within the
// window. A violation ends the run with an error.
package sim
