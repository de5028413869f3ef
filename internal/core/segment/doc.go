// Package segment tracks the bytes of one object: which were received, which are requested, which are free, and how far
// attempts may read.
//
// It is pure: offsets in, offsets out; no bytes, no clock, no lock. It is not safe for concurrent use; the state
// machine of package transfer owns it.
package segment
