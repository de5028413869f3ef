// Package fault says how a request over a link can end, and what follows from it. There is one table: whose fault an outcome
// is, whether the same request may work later, what a client of the proxy gets, with which code a command exits, and what the
// user is told.
//
// An attempt ends with one of the outcomes up to NoSlot. The others say more about a request that failed as a whole, see
// package transport's FailureOf.
//
// The package is pure: it reads no clock, has no state and imports nothing.
package fault
