// Package transfer is the heart: one object fetched over n links, as a state machine. Events go in, and their results come out:
// actions, a deadline, the bytes to keep and those that can be delivered ([Result]). It handles offsets, never bytes. Observers
// get a snapshot ([Machine.State]).
//
// The engine drives it with sockets, the simulator with virtual time. It owns the account of bytes (package segment), the
// estimates of this transfer (package estimate), and asks a scheduler (package schedule) what each link fetches next. Shared
// knowledge of a link's health comes in as LinkState events, and the transfer's own findings go out as Silent, Alive and Failed
// actions.
//
// Vocabulary: a connection belongs to one link and carries attempts in the order in which they were asked (pipelining); an
// attempt is one request for one range; its credit is the offset up to which it may read.
//
// Invariants:
//  1. Every byte of the object is received, free, or covered by a running attempt (segment.Ledger.Check).
//  2. No attempt's credit lies beyond Head + Window: bytes held for reordering fit the grant.
//  3. A byte is asked for a second time only while the first attempt is silent, and never a third time while both run. Spot checks
//     are apart: of all bytes one in 2,000 is asked for once more, to be compared and thrown away.
//  4. An attempt loses its tail only when the attempt that takes it has shown a valid head.
//
// It is pure and deterministic: no clock, no randomness, no I/O. Not safe for concurrent use; one loop owns it.
package transfer
