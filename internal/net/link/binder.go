package link

import (
	"errors"
	"fmt"
	"syscall"
)

// Binder binds sockets to links.
type Binder interface {
	// Control returns the function that [net.Dialer.Control] calls on a new socket to make it use only link l; the zero
	// Link leaves the route to the system. Its failure is a *BindError.
	Control(l Link) func(network, address string, c syscall.RawConn) error
}

// BindError reports that a socket could not be bound to a link. The socket was not used over another one.
type BindError struct {
	Link string
	Err  error
}

func (e *BindError) Error() string {
	remedy := ""
	switch {
	case errors.Is(e.Err, syscall.EPERM):
		remedy = "; grant the capability CAP_NET_RAW (setcap cap_net_raw+ep FILE) or use Linux 5.7 or newer"
	case errors.Is(e.Err, syscall.ENODEV):
		remedy = "; the interface is gone"
	}
	return fmt.Sprintf("bind to %s: %v%s", e.Link, e.Err, remedy)
}

func (e *BindError) Unwrap() error { return e.Err }
