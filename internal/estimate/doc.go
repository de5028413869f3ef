// Package estimate estimates the performance of a link from its past: goodput, peak, round-trip time.
//
// It is pure: every method that depends on time takes now. Rates are bytes per second, measured while the link is busy:
// an estimate does not decay because nobody asked the link for anything. Not safe for concurrent use.
package estimate
