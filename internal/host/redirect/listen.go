package redirect

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Only root can listen on ports below 1024 (ip(7), ip_unprivileged_port_start): if the rules outlive all processes, no
// other user of the machine can take the port that they lead to. These ports have no well-known service.
const (
	firstPort = 1000
	lastPort  = 1022
)

// Listeners are open ports on loopback for redirected connections, one for each family that the machine has: on a
// dual-stack socket an IPv4 connection would look like one of IPv6 (R154).
type Listeners struct {
	Port  uint16
	Files []*os.File
}

// IPv6 reports whether IPv6 is among the families.
func (l *Listeners) IPv6() bool { return len(l.Files) > 1 }

// Close closes the listeners. The ports stay open while another process has them open, too.
func (l *Listeners) Close() error {
	var errs []error
	for _, f := range l.Files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Listen opens a port that only root can use, or another one if none of these is free.
func Listen() (*Listeners, error) {
	for port := lastPort; port >= firstPort; port-- {
		if l, err := listen(port); err == nil {
			return l, nil
		}
	}
	return listen(0)
}

func listen(port int) (*Listeners, error) {
	v4, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	defer v4.Close() // its duplicate stays open
	port = v4.Addr().(*net.TCPAddr).Port
	l := &Listeners{Port: uint16(port)}
	if err := l.add(v4); err != nil {
		return nil, err
	}
	v6, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", port))
	switch {
	case err == nil:
		defer v6.Close()
		err = l.add(v6)
	case errors.Is(err, syscall.EADDRINUSE):
	default:
		err = nil // the machine has no IPv6
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Listeners) add(ln net.Listener) error {
	f, err := ln.(*net.TCPListener).File()
	if err == nil {
		l.Files = append(l.Files, f)
	}
	return err
}
