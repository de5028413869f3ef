package policy

import "net/http"

// Policy says what requests may do. The zero Policy lets every eligible GET use every link.
type Policy struct {
	Links []string // names of the links that may be used, in order of preference; nil = every link
}

// Decision is the Policy's answer for one request.
type Decision struct {
	Transfer    bool     // the GET may become a transfer, if the origin's answer allows it
	Reason      Reason   // why not; None if Transfer
	StartRanged bool     // see StartRanged; false unless Transfer
	Links       []string // names of the links that may carry the request; nil = every link
}

// Decide returns what may be done with r, a request in absolute-form as the client sent it: its Connection field must
// still be there. r is not changed.
func (p Policy) Decide(r *http.Request) Decision {
	ok, reason := Eligible(r)
	return Decision{
		Transfer:    ok,
		Reason:      reason,
		StartRanged: ok && StartRanged(r.Header),
		Links:       p.Links,
	}
}
