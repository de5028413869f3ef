package relay

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// ResetError is the reason why the relay ended a stream.
type ResetError struct{ Cause uint64 }

func (e *ResetError) Error() string {
	switch e.Cause {
	case lanes.CauseRefused:
		return "the relay does not connect to this address"
	case lanes.CauseNotFound:
		return "the relay does not find this name"
	case lanes.CauseFailed:
		return "the relay cannot reach this address"
	case lanes.CauseLimit:
		return "the relay has too many streams open"
	case lanes.CauseFlows:
		return "the relay's limit of tunnels at a time is reached"
	case lanes.CauseMonth:
		return "the relay's limit of bytes in a month is reached"
	case lanes.CauseDraining:
		return "the relay is about to end"
	}
	return "the other end of the tunnel has closed it"
}

// lasts returns how long no other streams are tried after this one: they would lose a round trip each.
func (e *ResetError) lasts() time.Duration {
	switch e.Cause {
	case lanes.CauseFlows:
		return time.Second
	case lanes.CauseMonth, lanes.CauseDraining:
		return time.Minute
	}
	return 0
}
