//go:build !linux

package origin

import (
	"errors"
	"net"
	"time"
)

// handshakeRTT is unknown where no TCP_INFO is read.
func handshakeRTT(net.Conn) time.Duration { return 0 }

// waiting cannot look into any connection: none is kept for later use.
func waiting(net.Conn) (bool, error) { return false, errors.ErrUnsupported }
