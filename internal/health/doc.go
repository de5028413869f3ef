// Package health decides which links may be used. Transfers report their observations to a Board. Each origin has a Board of
// its own, since an origin can make any link look dead; Boards adds one for verdicts that count for everybody.
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
// Suspicion is cheap: a suspect gets no new range, but bytes that it still delivers count. A ban is undone by a probe: a TCP
// connection to the origin, or for everybody's Board to any origin. The last link is never banned.
//
// For 10 s after it failed, a link that running transfers miss is probed often, each time by a fresh handshake, without waiting for
// the one before: the kernel repeats a lost packet only after a second. An answer ends the suspicion or the ban if an earlier
// probe was lost, since then the link was away and is back, and old connections wait for retransmissions that come too late. If the first
// probe is answered, the link was never away: the origin stalls, or starves its connections over the link. Nothing is gained by
// asking again soon, and the ban begins and ends by the slow timers.
//
// Two checks find links that are up and do not help: SlowCheck those that keep the others waiting (Skjolden 2019 section 8.2.4,
// with a guard), Contention those that share a bottleneck with another one.
//
// It is pure: now is an argument, Tick returns the next deadline. Not safe for concurrent use.
package health
