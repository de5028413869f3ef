// Package schedule holds the schedulers: each decides which link fetches which range next.
//
// A scheduler sees a View of one transfer and answers with one Decision; the machine of package transfer carries it out,
// then asks again until the answer is Wait. It is asked after every event and at Decision.Until. The same calls give the
// same answers: no clock (now is an argument), no randomness, no map order. Links are indices; where two are alike the
// lower one wins.
//
// A scheduler needs to know nothing of connections, memory or failures: Link.CanAsk says whether a request can leave now,
// View.Limit how far the reorder window reaches, and Hedge (common to all schedulers) requests bytes that a silent link owes
// again over another link. A range may reach beyond Limit, it is then read only as the next offset moves on; it must begin
// below it.
//
// A new scheduler is one file and one line in the registry. Package literature below has those of the papers, for
// comparison.
package schedule
