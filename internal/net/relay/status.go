package relay

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"time"
)

// Status is the state of a Client, as `tributary status`, the live page and the app get it.
type Status struct {
	Address string       `json:"address"`
	Lanes   []LaneStatus `json:"lanes"`             // by link
	Streams int          `json:"tunnels"`           // open tunnels through the relay
	Refusal string       `json:"refusal,omitempty"` // why it refuses more tunnels at the moment; they use one link
	Failed  int64        `json:"failed"`            // tunnels that it did not carry since the start; they use one link
	Failure string       `json:"failure,omitempty"` // reason of the last of them
}

// LaneStatus is the state of the lanes over one link.
type LaneStatus struct {
	Link        string  `json:"link"`
	Up          bool    `json:"up"`
	Connections int     `json:"-"`                     // number of lanes: one, or more where losses slow one down
	RTT         float64 `json:"rtt_seconds,omitempty"` // to the relay, in seconds, smoothed; 0 = unknown
	// that they carried since the start, both directions, without TLS
	Bytes   int64  `json:"bytes"`
	Failure string `json:"failure,omitempty"` // why there is no lane; "" = one is being made, or there is one
	Code    Code   `json:"code,omitempty"`    // code of the Failure
}

// Code is the reason why there is no lane, for programs.
type Code string

// The codes.
const (
	CodeUnreachable Code = "unreachable"  // no connection to the relay, or it broke off
	CodeWrongKey    Code = "wrong_key"    // another server answers, or the relay has another key
	CodeNotAccepted Code = "not_accepted" // the relay no longer knows this client
	CodeFull        Code = "full"         // the relay has no room for another connection of this client at the moment
	CodeRestarted   Code = "restarted"    // the relay has forgotten the session; the next attempt starts a new one
)

// errNoProtocol is the alert of a TLS server that does not speak the relay's protocol (no_application_protocol, RFC
// 7301).
var errNoProtocol = tls.AlertError(120)

// codeOf returns the code of a failed attempt to make a lane.
func codeOf(err error) Code {
	op, isOp := errors.AsType[*net.OpError](err)
	alert := isOp && op.Op == "remote error" // the name in crypto/tls for alerts from the peer
	switch {
	case errors.Is(err, ErrWrongKey), alert && op.Err.Error() == errNoProtocol.Error():
		return CodeWrongKey
	case errors.Is(err, errFull):
		return CodeFull
	case errors.Is(err, errRestarted):
		return CodeRestarted
	case alert: // about the client's certificate
		return CodeNotAccepted
	}
	return CodeUnreachable
}

// Status returns the state of a client.
func (c *Client) Status() Status {
	s := Status{Address: c.address, Lanes: []LaneStatus{}}
	if err := c.refusal(time.Now()); err != nil {
		s.Refusal = err.Error()
	}
	c.mu.Lock()
	v := c.current
	if s.Failed = c.failed; c.failure != nil {
		s.Failure = c.failure.Error()
	}
	first := map[string]uint32{}
	for name, p := range c.at {
		l := LaneStatus{Link: name, Up: len(p.lanes) > 0, Connections: len(p.lanes)}
		if l.Up {
			first[name] = p.lanes[0]
		}
		if !l.Up && p.failure != nil {
			l.Failure, l.Code = p.failure.Error(), codeOf(p.failure)
		}
		if n := c.carried[name]; n != nil {
			l.Bytes = n.Load()
		}
		s.Lanes = append(s.Lanes, l)
	}
	c.mu.Unlock()
	slices.SortFunc(s.Lanes, func(a, b LaneStatus) int { return strings.Compare(a.Link, b.Link) })
	if v == nil {
		return s
	}
	s.Streams = v.openStreams()
	for i := range s.Lanes {
		s.Lanes[i].RTT = v.rtt(first[s.Lanes[i].Link]).Seconds()
	}
	return s
}
