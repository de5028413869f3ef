package health

import "time"

// How long silence may last, from the shortest to the longest. Whatever waits for a link, a connection or the other end
// of a tunnel takes its limit from here, so that they agree: by the time a link is banned, its connections have been
// given up.
const (
	// SteadyPause bounds the tolerated silence in mid-body of a connection whose link has delivered for SteadyAfter and
	// never rested for more than a quarter of SteadyPause.
	SteadyPause = 200 * time.Millisecond
	SteadyAfter = 500 * time.Millisecond

	// SuspectAfter is the silence that makes a link, or a lane of a relay, a suspect, in addition to four times the
	// variation of its response time. A byte that another transfer received over the link less long ago speaks for it.
	SuspectAfter = 300 * time.Millisecond

	// BodyPause replaces SteadyPause for other connections: the variation includes the origin's thinking time before a
	// first byte.
	BodyPause = 400 * time.Millisecond

	// ThinkingTime is granted to an origin without a known response time.
	ThinkingTime = 500 * time.Millisecond

	// BanAfter is the suspicion after which a link is banned, and the silence after which a connection is given up: a
	// fresh one may work where the old one waits for a retransmission (the RTO doubles with each one lost). A link that
	// delivered something for anybody within this time is alive. A tunnel or an undivided request whose other end owes
	// an answer is overdue after it.
	BanAfter = 3 * time.Second

	// LastChance replaces BanAfter for a response that may be the last one, because the origin has refused another
	// request: the RTO of its connection may have doubled that often. After it, a silent tunnel tells nothing new about
	// its link.
	LastChance = 15 * time.Second

	// GoneAfter is how long sent bytes may stay unacknowledged before the kernel gives up a connection
	// (TCP_USER_TIMEOUT, RFC 5482): a vanished link ends a connection in half a minute, not in the quarter of an hour
	// of tcp_retries2. It is not shorter, because a receiver that pauses counts too.
	GoneAfter = 30 * time.Second
)
