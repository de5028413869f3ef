// Package fault lists the outcomes of a request over a link and their consequences. One table gives, for each outcome,
// who is to blame, whether the same request may succeed later, the response to a client of the proxy, the exit code of
// a command, and the message to the user.
//
// An attempt ends with one of the outcomes up to NoSlot. The others describe a request that failed as a whole; see
// FailureOf in package transport.
//
// The package is pure: it reads no clock, has no state and imports nothing.
package fault
