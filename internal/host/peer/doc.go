// Package peer finds the user at the other end of a connection within this machine.
//
// Loopback does not authenticate anybody: every user and every app of the machine can connect to a port there. The
// kernel knows the owner of the socket at the other end. This package looks it up by address pair, over sock_diag(7),
// or in /proc/net/tcp if that is not available. Both ends must be in the network namespace of the process.
//
// Only a socket that a process still holds has an owner. The kernel attributes the remains of a closed one (TIME_WAIT,
// an orphan that still sends) to root, which would be wrong. The package recognizes such remains because they do not
// have an inode.
//
// All functions are safe for concurrent use and keep no state.
package peer

import "errors"

// ErrUnknown says that the kernel knows of no process at the other end, or does not report it. Other errors are
// temporary.
var ErrUnknown = errors.New("no process holds the other end of the connection")
