package spread

import "time"

const (
	// sessionLife is how long a session without a connection keeps its link.
	sessionLife = 10 * time.Minute
	// maxSessions is the maximum number of sessions of all users. The user with the most sessions loses the oldest one,
	// so that nobody can make others lose theirs.
	maxSessions = 2048
)

// sessionKey identifies a session.
type sessionKey struct{ user, domain string }

// session is the link of a session.
type session struct {
	link string
	used time.Time
	turn uint64 // sequence number of the last use: many may happen at one moment
}

// sessions remembers the links of sessions.
type sessions struct {
	of   map[sessionKey]session
	each map[string]int // by user
	turn uint64
}

// link returns the link of a session, "" if it has none.
func (s *sessions) link(now time.Time, k sessionKey) string {
	if e, ok := s.of[k]; ok && now.Sub(e.used) <= sessionLife {
		return e.link
	}
	return ""
}

// use assigns a session to a link.
func (s *sessions) use(now time.Time, k sessionKey, link string) {
	if s.of == nil {
		s.of, s.each = map[sessionKey]session{}, map[string]int{}
	}
	if _, ok := s.of[k]; !ok {
		if len(s.of) >= maxSessions {
			s.evict()
		}
		s.each[k.user]++
	}
	s.turn++
	s.of[k] = session{link, now, s.turn}
}

// extend records that a session continues, on whatever link it has.
func (s *sessions) extend(now time.Time, k sessionKey) {
	if link := s.link(now, k); link != "" {
		s.use(now, k, link)
	}
}

// evict forgets the oldest session of the user with the most sessions.
func (s *sessions) evict() {
	most := ""
	for user, n := range s.each {
		if n > s.each[most] || n == s.each[most] && user < most {
			most = user
		}
	}
	var oldest sessionKey
	first := s.turn + 1
	for k, e := range s.of {
		if k.user == most && e.turn < first {
			oldest, first = k, e.turn
		}
	}
	s.forget(oldest)
}

func (s *sessions) forget(k sessionKey) {
	delete(s.of, k)
	if s.each[k.user]--; s.each[k.user] == 0 {
		delete(s.each, k.user)
	}
}
