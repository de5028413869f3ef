// Package estimate estimates the performance of a link from its past: goodput, peak and round-trip time. It also keeps
// the findings of transfers: a History keeps them for some minutes, and a Record outlives the process.
//
// The package is pure: every method that depends on time takes now. Rates are in bytes per second, measured while the
// link is busy; an estimate does not decay while the link is idle. Nothing here is safe for concurrent use.
//
// Reasons: docs/decisions/delay-under-load.md, remembered-refusals.md, cold-start.md.
package estimate
