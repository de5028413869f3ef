// Package health decides which links may be used. Transfers report their observations to a Board. Each origin has a Board of
// its own, since an origin can make any link look dead; Boards adds one for verdicts that count for everybody.
//
//	             silent                  3 s of silence, dial or bind error, too slow
//	   Up -----------------> Suspect ------------------------------------------> Banned
//	   ^  <-----------------   |                                                  | wait: 1 s, doubling to 30 s
//	   |        a byte         | (the last link stays a suspect                   v
//	   |                       |  and is probed every second)                  Probing
//	   +-----------------------+--------------------------------------------------+ connected
//
//	any state -- interface down, address gone --> Down -- it is back --> Up
//	Banned, Probing -- a byte after all, if silence was the cause; or the last other link goes down --> Up
//
// Suspicion is cheap: a suspect gets no new range, but bytes that it still delivers count. A ban is undone by a probe: a TCP
// connection to the origin, or for everybody's Board to any origin. The last link is never banned.
//
// The slow-link limits are those of Skjolden 2019 section 8.2.4 with the guards that it leaves out: warm-up, hysteresis,
// and the last link exempt.
//
// It is pure: now is an argument, Tick returns the next deadline. Not safe for concurrent use.
package health
