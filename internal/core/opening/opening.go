package opening

import (
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// Memory holds the findings of earlier GETs about the origin.
type Memory struct {
	Whole   bool  // it served this object whole, regardless of the requested range
	Small   bool  // it recently served no object worth several links
	Size    int64 // probable size of the object in bytes, 0 = unknown: a hint from an earlier GET or from the client
	Sure    bool  // Size is from the client
	Refuses bool  // it recently refused later requests for an object that it served
	Dear    bool  // bytes that turn out to be unwanted cost something
}

// Plan describes how the requests of a GET begin.
type Plan struct {
	Requested segment.Range // range of the object that the client wants, as far as it is known
	// length of the first range in bytes; 0 = the client's own request as it is; transfer.Unknown = all
	Initial   int64
	Warm      bool          // connecting the other links before the first response may be useful
	Ahead     segment.Range // range to request on other links before the first response; empty = none
	AheadEach int64         // bytes of Ahead for each of these links
}

// Notes are the findings of a GET about the origin.
type Notes struct {
	Large    bool     // the object was worth several links
	Whole    bool     // the next GET of this object should ask for all of it
	Excluded []string // links with a refused response after another link's response was good
}

// Do says how to use a first response.
type Do uint8

const (
	Join   Do = iota // its content is part of the transfer
	Stream           // the client gets it as it arrives, over its one connection
	Repeat           // its connection is closed, and the request is made again as the client made it: see Opening.Again
	Drop             // its connection is closed, and the attempt has failed
)

// Verdict describes how to use a first response, and why.
type Verdict struct {
	Do          Do
	Reason      Reason        // reason why the response is not divided; None if it joins
	Outcome     fault.Outcome // how the attempt ended; for Drop
	ClientsHead bool          // the client gets its head; for Join
}

// Opening is the start of one GET. Create it with New and call Begin before each first request.
type Opening struct {
	path      string              // path of the object, including the query
	fields    map[string][]string // the client's fields
	exposes   bool                // the fields reveal credentials to the operator of a link
	threshold int64
	ranged    bool // the first request may ask for our own range
	repeated  bool // such a request was sent and not answered as expected
	restarted bool

	// State since the last Begin.
	again    bool
	memory   Memory
	plan     Plan
	asked    bool                // the client sent a Range field
	own      segment.Range       // see Own
	initial  map[string][]string // fields of the first request
	joined   map[string][]string // fields of all other requests
	ifRange  string              // the client's own If-Range, only on the first request (R80)
	version  *Identity           // nil before the first Join
	served   []string            // links over which the version was served; the first one's response determined it
	ignored  bool                // a range request was answered with the whole object
	ranges   bool                // a range request was answered with a range
	disjoint bool                // the transfer failed midway because the responses are inconsistent
	excluded []string            // see Notes
}

// conditions lists the fields that make a request conditional (RFC 9110 section 13.1), except If-Range.
var conditions = []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"}

// New returns the Opening of a GET for the object at a path, including the query, with the client's end-to-end fields.
// The threshold is the size in bytes up to which one link is enough. It is also the size of the first range: an object
// that fits is complete with one request, and a larger one gives the other links time to connect.
func New(scheme, path string, fields map[string][]string, threshold int64) *Opening {
	return &Opening{
		path:      path,
		fields:    fields,
		exposes:   Exposes(scheme, fields),
		threshold: threshold,
		ranged:    startRanged(fields),
	}
}

// Begin returns the plan of the first request. Call it at the start and whenever Again reports true.
func (o *Opening) Begin(m Memory) Plan {
	*o = Opening{
		path:      o.path,
		fields:    o.fields,
		exposes:   o.exposes,
		threshold: o.threshold,
		ranged:    o.ranged,
		repeated:  o.repeated,
		restarted: o.restarted,
		memory:    m,
	}
	o.read()
	o.plan.Warm = o.plan.Warm && !m.Whole && !m.Small
	o.plan.Ahead, o.plan.AheadEach = o.ahead()
	return o.plan
}

// read makes the plan from the client's fields.
func (o *Opening) read() {
	o.plan = Plan{Requested: segment.Range{End: transfer.Unknown}, Warm: true}
	o.initial = without(o.fields, "Range", "If-Range")
	o.joined = without(o.initial, conditions...)
	o.ifRange = first(o.fields, "If-Range")
	if field := first(o.fields, "Range"); field != "" {
		o.asked = true
		s, ok := byterange.ParseRange(field)
		if !ok || s.First < 0 {
			// Request it as it is: the client's own fields are sent unchanged.
			o.initial, o.ifRange, o.plan.Warm = o.fields, "", false
			return
		}
		o.plan.Requested = segment.Range{Start: s.First, End: s.End}
		o.own = o.plan.Requested
	}
	switch {
	case !o.ranged || o.repeated || o.memory.Whole:
	case o.plan.Requested.End != transfer.Unknown && o.plan.Requested.Len() <= o.threshold:
		o.plan.Warm = false
	case o.once():
		o.plan.Initial = transfer.Unknown
	default:
		o.plan.Initial = o.threshold
	}
}

// once reports whether the origin may refuse all requests but the first, or all but a few: many URLs with a query are
// valid only once. The first request then asks for everything, so that its response can serve the client alone (R252).
func (o *Opening) once() bool {
	query := strings.Contains(o.path, "?") && !o.memory.Sure
	return (query || o.memory.Refuses) && !o.memory.Dear
}

// Exposes reports whether the fields of the request reveal credentials to the operator of a link.
func (o *Opening) Exposes() bool { return o.exposes }

// Fields returns the fields of the next request, except Host and Range, and its If-Range. Once the version is known,
// the only condition that requests carry is that the version is still the same (R78, R95).
func (o *Opening) Fields() (fields map[string][]string, ifRange string) {
	if o.version != nil {
		return o.joined, o.version.Validator
	}
	return o.initial, o.ifRange
}

// Own returns the range of the client's own request, or the zero Range if the request has none or its Range field is
// sent unchanged.
func (o *Opening) Own() segment.Range { return o.own }

// Version returns the version of the object that the client gets, or nil before the first Join.
func (o *Opening) Version() *Identity { return o.version }

// Content returns the part of the object that the client gets, as far as it is known.
func (o *Opening) Content() segment.Range {
	w := o.plan.Requested
	if o.version != nil {
		w.End = min(w.End, o.version.Total)
	}
	return w
}

// Answer handles the head of a response over a link, to the first request or to a copy of it. pending means that a
// response to an earlier one of these requests may still arrive.
func (o *Opening) Answer(h Head, link string, pending bool) Verdict {
	if o.version != nil { // another one was faster
		if !h.Mismatch && h.ID == *o.version {
			o.serves(link)
			return Verdict{Do: Join}
		}
		return Verdict{Do: Drop, Outcome: fault.Changed}
	}
	reason, ours := o.judge(h)
	o.note(h)
	switch {
	case (ours || reason == Status) && pending: // the request that it repeats may still be answered (R119)
		return Verdict{Do: Drop, Reason: reason, Outcome: fault.Unwanted}
	case ours:
		o.repeated, o.again = true, true
		return Verdict{Do: Repeat, Reason: reason}
	case reason != None:
		return Verdict{Do: Stream, Reason: reason}
	}
	id := h.ID
	o.version, o.served = &id, []string{link}
	return Verdict{Do: Join, ClientsHead: true}
}

// judge returns why a response cannot be divided, or None if it can. It also returns whether our own range may be the
// cause: the request must then be made again as the client made it (R77).
func (o *Opening) judge(h Head) (reason Reason, ours bool) {
	ours = o.plan.Initial > 0 && !(o.asked && h.Status >= 300)
	switch {
	case h.Status == statusPartial && (o.asked || o.plan.Initial > 0):
		end := min(o.plan.Requested.End, h.ID.Total)
		switch {
		case h.Mismatch:
			return BadRange, ours
		case h.ID.Total < 0:
			return UnknownLength, ours
		case h.Range.End >= end && (o.plan.Initial != transfer.Unknown || end-o.plan.Requested.Start <= o.threshold):
			return Small, false
		case h.Range.End >= end: // the client can have it as it is
			return h.Unfit, false
		}
		return h.Unfit, ours && h.Unfit != None
	case h.Status == statusOK:
		switch {
		case h.Unfit != None:
			return h.Unfit, false
		case o.asked, o.memory.Whole:
			return NoRanges, false
		case h.ID.Total <= o.threshold:
			return Small, false
		}
		return None, false
	}
	return Status, ours && dueToRange(h.Status, o.initial)
}

// dueToRange reports whether our own Range field may be why an origin answers with this status: the origin cannot serve
// the range, refuses such requests or fails on them. All other statuses would have occurred without it, and asking
// twice would count a wrong password twice and add load to a busy origin.
func dueToRange(status int, fields map[string][]string) bool {
	switch status {
	case 400, 403, 416, 500, 501:
		return true
	case 304, 412: // only if the client sent no condition
		return !slices.ContainsFunc(conditions, func(name string) bool { return len(fields[name]) > 0 })
	}
	return false
}

// note records how the origin handled the range of a first request (R137).
func (o *Opening) note(h Head) {
	switch {
	case o.asked && o.ifRange != "": // a 200 may be another version
	case h.Status == statusPartial:
		o.ranges = true
	case h.Status == statusOK && (o.plan.Initial > 0 || o.repeated || h.Unfit == HTTP10 || servesNone(h.Fields)):
		o.ignored = true
	}
}

// Served records that a later request over a link got its range.
func (o *Opening) Served(link string) {
	o.ranges = true
	o.serves(link)
}

func (o *Opening) serves(link string) {
	if !slices.Contains(o.served, link) {
		o.served = append(o.served, link)
	}
}

// Ended records how an attempt over a link ended. It reports whether the origin refused a request over a link that it
// had served: the link is not to blame then, and the origin may refuse later requests for other objects too.
func (o *Opening) Ended(link string, outcome fault.Outcome) (refused bool) {
	i := slices.Index(o.served, link)
	switch {
	case outcome == fault.NoRange:
		o.ignored = true
	case i >= 0 && (outcome == fault.Unwanted || outcome == fault.Busy):
		return true
	case o.version != nil && (i < 0 && outcome == fault.Unwanted || i != 0 && outcome == fault.Differs) &&
		!slices.Contains(o.excluded, link):
		o.excluded = append(o.excluded, link)
	}
	return false
}

// Lost records that no remaining link serves the version that joined. seen is whether the client has its head. If not,
// and the origin replaced that version, the GET starts again, once (R107).
func (o *Opening) Lost(outcome fault.Outcome, seen bool) {
	if o.version == nil {
		return
	}
	o.disjoint = seen && outcome.Blame() == fault.BlameOrigin && outcome != fault.Busy
	if outcome == fault.Changed && !seen && !o.restarted {
		o.restarted, o.again = true, true
	}
}

// Again reports whether the request must be made again, starting with Begin.
func (o *Opening) Again() bool { return o.again }

// Remember returns notes for later GETs. If ranges were ignored or inconsistent, later GETs ask for the whole object. A
// link is to blame for a refusal only if another link was served.
func (o *Opening) Remember() Notes {
	return Notes{
		Large:    o.version != nil,
		Whole:    o.ignored && !o.ranges && !o.memory.Whole || o.disjoint,
		Excluded: o.excluded,
	}
}

// without returns a copy of h without the named fields.
func without(h map[string][]string, names ...string) map[string][]string {
	c := make(map[string][]string, len(h))
	for name, lines := range h {
		if !slices.Contains(names, name) {
			c[name] = slices.Clone(lines)
		}
	}
	return c
}
