//go:build !linux

package origin

import (
	"errors"
	"net"
)

// waiting cannot look into any connection: none is kept for later use.
func waiting(net.Conn) (bool, error) { return false, errors.ErrUnsupported }

// inlet cannot look into any connection.
type inlet struct{}

func newInlet(net.Conn) inlet { return inlet{} }

func (inlet) waiting() int { return 0 }
