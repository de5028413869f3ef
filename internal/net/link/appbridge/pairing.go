package appbridge

// Code tells the app why a relay was not paired or forgotten.
type Code string

// The codes.
const (
	CodeBadLink     Code = "bad_link"     // not an invitation
	CodeNoLink      Code = "no_link"      // no network is up that may be used
	CodeUnknownName Code = "unknown_name" // the relay's name could not be resolved
	CodeUnreachable Code = "unreachable"  // the relay could not be reached, or the connection broke off
	CodeForbidden   Code = "forbidden"    // the address may not be asked
	CodeWrongKey    Code = "wrong_key"    // a server other than the one that made the link answers
	CodeRefused     Code = "refused"      // the link has been used or is too old
	CodeNotSaved    Code = "not_saved"    // the keys cannot be read or written
)

// maxPairings is the number of pairings that may wait.
const maxPairings = 4

// Pairing is the app's request to pair or to forget a relay.
type Pairing struct {
	Invitation string // "" = Address is to be forgotten. A secret: it must not be logged
	Address    string

	id     uint64
	bridge *Bridge
}

// Pairings returns a channel of the app's requests about relays. The receiver ends each by Done or Failed.
func (h *Bridge) Pairings() <-chan Pairing { return h.pairings }

// pair passes a request on. Excess ones are ignored, since an app that sends that many does not wait for answers.
func (h *Bridge) pair(m inMessage) {
	p := Pairing{Address: m.Address, id: m.ID, bridge: h}
	if m.Type == "pair" {
		p.Invitation, p.Address = m.Link, ""
	}
	select {
	case h.pairings <- p:
	default:
		h.log.Warn("refused a wish of the app about relays: too many wait", "limit", maxPairings)
	}
}

// Done tells the app that the request succeeded, and for which relay.
func (p Pairing) Done(address string) {
	p.bridge.say(outMessage{Type: p.answer(), ID: p.id, Address: address})
}

// Failed tells the app why the request failed. err must not contain the invitation.
func (p Pairing) Failed(code Code, err error) {
	p.bridge.say(outMessage{Type: p.answer(), ID: p.id, Code: code, Error: err.Error()})
}

func (p Pairing) answer() string {
	if p.Invitation == "" {
		return "forgotten"
	}
	return "paired"
}
