// Package schedule provides the schedulers. A scheduler decides which link fetches which range next.
//
// A scheduler sees a View of one transfer and returns one Decision. The machine of package transfer carries it out, and
// then calls the scheduler again until it decides to wait. The machine calls it after every event and at
// Decision.Until. Schedulers are deterministic: they use no clock (now is an argument), no randomness and no map order.
// Links are indices; if two are equal, the lower index wins.
//
// A scheduler does not deal with connections, memory or failures. Link.CanAsk says whether a request can be sent now,
// View.Limit is the end of the reorder window, and Hedge (common to all schedulers) requests the bytes that a silent
// link owes over another link. A range must begin below Limit but may extend beyond it; the part beyond is read only as
// the next offset advances.
//
// A new scheduler is one file and one line in the registry. Package literature provides the schedulers from the papers,
// for comparison.
//
// Reasons: docs/decisions/goals.md, short-ranges.md.
package schedule
