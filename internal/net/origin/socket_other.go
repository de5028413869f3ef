//go:build !linux

package origin

import (
	"errors"
	"net"
)

// waiting cannot inspect any connection, so none is kept for later use.
func waiting(net.Conn) (bool, error) { return false, errors.ErrUnsupported }

// inlet cannot inspect any connection.
type inlet struct{}

func newInlet(net.Conn) inlet { return inlet{} }

func (inlet) waiting() int { return 0 }
