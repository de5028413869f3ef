package spread

import (
	"slices"
	"time"
)

const (
	// farSlower is the share of the best link's goodput under which a link gets no further connections.
	farSlower = 0.2
	// farther is the multiple of the best link's round trip from which a link is far more distant, if it also exceeds
	// near: shorter round trips cost a download little, however they compare.
	farther = 3
	near    = 0.1 // seconds
)

// ID identifies an open connection.
type ID uint64

// Link is a link that a connection may take.
type Link struct {
	Name    string
	Metered bool // it joins others last
	Lost    bool // another link recently overtook it: it starts after the others
	// Remembered is the earlier goodput of its network, in bytes per second, 0 if unknown. It counts until the link is
	// measured.
	Remembered float64
}

// Placement is the decision about a connection.
type Placement struct {
	ID    ID
	Order []int // the links in the order in which they may start, as indices
	// Settled reports whether its session has a link, the first of the order. Another link would show the server
	// another address.
	Settled bool
	Works   bool // the first link of the order carried something recently: a late answer says little
}

// key identifies connections that belong together.
type key struct{ user, program, host string }

// flow is an open connection.
type flow struct {
	key     key
	session sessionKey
	link    string
	leads   bool // its session follows it
	spreads bool
	further bool // metered links could help it
	began   time.Time

	total  int64     // bytes until the last measurement
	moved  time.Time // the last measurement that found new ones
	rate   float64   // bytes per second between the last two measurements
	streak int       // measurements in a row that found new ones
}

// Table knows the open connections and the links of sessions. Make it with New.
type Table struct {
	policy   Policy
	flows    map[ID]*flow
	last     ID
	links    map[string]*linkState
	sessions sessions
	measured time.Time
}

// New returns an empty Table.
func New(p Policy) *Table {
	return &Table{policy: p, flows: map[ID]*flow{}, links: map[string]*linkState{}}
}

// Place decides which link a new connection tries first. links are in their default order. The connection counts as
// open on that link until Moved or End.
func (t *Table) Place(now time.Time, f Flow, links []Link) Placement {
	t.last++
	n := &flow{
		key:     key{f.User, f.Program, f.Host},
		session: sessionKey{f.User, f.Domain},
		leads:   t.policy.Mode == Auto || t.policy.Mode == All,
		spreads: t.policy.spreads(f),
		began:   now,
	}
	n.further = n.spreads && !f.Unmetered
	order := make([]int, len(links))
	for i := range order {
		order[i] = i
	}
	settled := false
	if n.leads {
		home := t.home(now, n.session, links)
		order, settled = front(order, home), home >= 0
	}
	if n.spreads && t.together(now, n.key) {
		n.leads, settled = false, false
		order = front(order, t.roomiest(now, n.key, links))
		t.sessions.extend(now, n.session)
	}
	if len(links) > 0 {
		n.link = links[order[0]].Name
		if n.leads { // others of the session may start before it is connected
			t.sessions.use(now, n.session, n.link)
		}
	}
	t.flows[t.last] = n
	return Placement{t.last, order, settled, t.works(now, n.link)}
}

// front moves index i to the front. It changes nothing if i is negative.
func front(order []int, i int) []int {
	at := slices.Index(order, i)
	if at < 0 {
		return order
	}
	return slices.Insert(slices.Delete(order, at, at+1), 0, i)
}

// home returns the index of a session's link. It returns -1 if the session has none, or if that link costs money and
// another does not.
func (t *Table) home(now time.Time, k sessionKey, links []Link) int {
	name := t.sessions.link(now, k)
	i := slices.IndexFunc(links, func(l Link) bool { return l.Name == name })
	if i < 0 || links[i].Metered && slices.ContainsFunc(links, func(l Link) bool { return !l.Metered }) {
		return -1
	}
	return i
}

// together reports whether another connection of the key is in use.
func (t *Table) together(now time.Time, k key) bool {
	for _, f := range t.flows {
		if f.key == k && (now.Sub(f.began) < fresh || now.Sub(f.moved) < idle) {
			return true
		}
	}
	return false
}

// counts reports whether a connection takes goodput from others on its link: it runs, or is so new that it will run
// soon.
func (f *flow) counts(now time.Time) bool {
	return f.rate >= running || f.spreads && now.Sub(f.began) < fresh
}

// roomiest returns the link with the highest goodput per running connection, -1 if there is none for the key.
func (t *Table) roomiest(now time.Time, k key, links []Link) int {
	load, own := map[string]int{}, map[string]bool{}
	for _, f := range t.flows {
		if f.counts(now) {
			load[f.link]++
			own[f.link] = own[f.link] || f.key == k
		}
	}
	goodput, best := t.goodputs(now, links)
	spared := false // an unmetered link still has no connection of the key
	eligible := func(i int) bool {
		return !links[i].Lost && best >= 0 && !t.far(now, links, goodput, i, best)
	}
	for i, l := range links {
		spared = spared || eligible(i) && !l.Metered && !own[l.Name]
	}
	chosen, most := -1, 0.0
	for i, l := range links {
		if !eligible(i) || l.Metered && spared {
			continue
		}
		if share := goodput[i] / float64(load[l.Name]+1); chosen < 0 || share > most {
			chosen, most = i, share
		}
	}
	return chosen
}

// goodputs returns the goodput of each link, measured or remembered, with the mean in place of an unknown one, and the
// index of the best link; -1 if none may start first.
func (t *Table) goodputs(now time.Time, links []Link) (all []float64, best int) {
	all = make([]float64, len(links))
	sum, n := 0.0, 0
	for i, l := range links {
		if s := t.links[l.Name]; s != nil {
			all[i] = s.goodput.best(now, true)
		}
		if all[i] == 0 {
			all[i] = l.Remembered
		}
		if all[i] > 0 {
			sum += all[i]
			n++
		}
	}
	best = -1
	for i, l := range links {
		switch {
		case all[i] > 0:
		case n > 0:
			all[i] = sum / float64(n)
		default:
			all[i] = 1
		}
		if !l.Lost && (best < 0 || all[i] > all[best]) {
			best = i
		}
	}
	return all, best
}

// far reports whether a link is far slower or far more distant than the best one.
func (t *Table) far(now time.Time, links []Link, goodput []float64, i, best int) bool {
	if goodput[i] < farSlower*goodput[best] {
		return true
	}
	distance := func(i int) float64 {
		if s := t.links[links[i].Name]; s != nil {
			return s.distance.best(now, false)
		}
		return 0
	}
	d, least := distance(i), distance(best)
	return least > 0 && d > near && d > farther*least
}

// Moved reports the link that carries a connection, if it is not the first of its order.
func (t *Table) Moved(now time.Time, id ID, link string) {
	f := t.flows[id]
	if f == nil || f.link == link {
		return
	}
	f.link = link
	if f.leads {
		t.sessions.use(now, f.session, link)
	}
}

// End reports the end of a connection, and how many bytes it carried.
func (t *Table) End(now time.Time, id ID, carried int64) {
	f := t.flows[id]
	if f == nil {
		return
	}
	f.count(t.link(now, f.link), carried, now, 0)
	t.sessions.extend(now, f.session)
	delete(t.flows, id)
}
