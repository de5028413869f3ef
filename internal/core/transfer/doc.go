// Package transfer is the core of Tributary: a state machine that fetches one object over n links. It takes events and
// returns actions, a deadline, the bytes to keep and those that can be delivered ([Result]). It handles offsets, never
// bytes. Observers get a snapshot ([Machine.State]).
//
// The engine drives the machine with sockets, and the simulator drives it in virtual time. The machine owns the ledger
// of bytes (package segment) and the estimates of this transfer (package estimate), and asks a scheduler (package
// schedule) what each link fetches next. Shared knowledge about a link's health arrives as LinkState events, and the
// transfer reports its own findings as ReportSilent, ReportAlive and ReportFailed actions.
//
// Vocabulary: a connection belongs to one link and carries attempts in the order of their requests (pipelining). An
// attempt is one request for one range. Its credit is the offset up to which it may read.
//
// Invariants:
//  1. Every byte of the object is received, free, or covered by a running attempt (segment.Ledger.Check).
//  2. No attempt's credit lies beyond Offset + Window: bytes held for reordering fit the grant.
//  3. A byte is requested a second time only while the first attempt is silent, and never a third time while both run.
//     Spot checks are an exception: one byte in 2,000 is requested again, compared and discarded. So are the reserve,
//     once it is read, and the kept response, while it is read on.
//  4. An attempt loses its tail only when the attempt that takes it has a valid head.
//
// The machine is pure and deterministic: no clock, no randomness, no I/O. It is not safe for concurrent use; one loop
// owns it.
//
// Reasons: docs/decisions/pipelining.md, background.md, cuts.md, later-refusals.md, kept-response.md, no-deadlock.md,
// refusing-links.md, spot-checks.md, slow-clients.md.
package transfer
