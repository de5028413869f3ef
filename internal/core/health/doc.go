// Package health decides which links may be used. Transfers report their observations to a Board. Each origin has a
// Board of its own, since an origin can make any link look dead; Boards adds one for verdicts that count for everybody.
//
//	             silent                  3 s of silence, dial or bind error, too slow, no gain
//	   Up -----------------> Suspect ------------------------------------------> Banned
//	   ^  <-----------------   |                                                  | wait: 1 s, doubling to 30 s
//	   |        a byte         | (the last link stays a suspect                   v
//	   |                       |  and is probed every second)                  Probing
//	   +-----------------------+--------------------------------------------------+ connected
//	   +-----------------------+---- probed every 50 to 250 ms for 10 s: connected, and an earlier probe was lost
//
//	any state -- interface down, address gone --> Down -- it is back --> Up
//	Banned, Probing -- a byte after all, if silence was the cause; or the last other link goes down --> Up
//	Banned, no gain -- its time is over, it is missed, or no other link is up --> Up
//
// Suspicion is cheap: a suspect gets no new range, but bytes that it still delivers count. A probe undoes a ban: a TCP
// connection to the origin, or for everybody's Board to any origin. The last link is never banned.
//
// For 10 s after a failure, a link that running transfers need is probed often, each time by a new handshake that does
// not wait for the previous one, since the kernel repeats a lost packet only after a second. An answered probe ends the
// suspicion or the ban if an earlier probe was lost: then the link was away and has returned, while old connections
// still wait for retransmissions. If the first probe is answered, the link was never away: the origin stalls, or
// starves its connections over the link. Probing again soon would not help then, and the slow timers apply.
//
// Two checks find links that are up but do not help. SlowCheck finds links that keep the others waiting (Skjolden 2019
// section
// 8.2.4, with a guard), and Contention finds links that share a bottleneck with another one.
//
// The package is pure: now is an argument, and Tick returns the next deadline. It is not safe for concurrent use.
//
// Reasons: docs/decisions/silence.md, dead-links.md, returning-links.md, last-link.md, slow-links.md,
// shared-bottleneck.md.
package health
