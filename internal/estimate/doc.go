// Package estimate estimates the performance of a link from its past: goodput, peak, round-trip time. It also keeps what
// transfers have shown: a History for minutes, and a Record that outlasts the process.
//
// It is pure: every method that depends on time takes now. Rates are bytes per second, measured while the link is busy:
// an estimate does not decay because nobody asked the link for anything. Not safe for concurrent use.
package estimate
