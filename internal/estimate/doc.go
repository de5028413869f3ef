// Package estimate estimates the performance of a link from its past: goodput, peak, round-trip time. It also keeps what
// transfers have learned: a History for some minutes, and a Record that survives the process.
//
// It is pure: every method that depends on time takes now. Rates are bytes per second, measured while the link is busy:
// an estimate does not decay while the link is idle. Not safe for concurrent use.
package estimate
