package appbridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
)

// bindRequest asks for a socket to be bound to a network.
type bindRequest struct {
	handle uint64
	fd     int
	answer chan<- error // has room for one
}

// refusal is the error with which the app refused to bind a socket. It is not a syscall.Errno itself, since that would
// describe an error of this process.
type refusal struct{ errno unix.Errno }

func (r refusal) Error() string {
	switch r.errno {
	case unix.EPERM, unix.EACCES:
		return "the app may not use this network: a VPN that apps cannot bypass is on, or background data is restricted"
	}
	if r.gone() {
		return "the network is gone"
	}
	return "the app failed: " + r.errno.Error()
}

// gone reports whether the app refused because the network is gone.
func (r refusal) gone() bool {
	return r.errno == unix.ENONET || r.errno == unix.ENETDOWN || r.errno == unix.ENODEV
}

// Unwrap returns the kernel's error for a network that is gone: no route. The network may come back, or another one may
// lead there.
func (r refusal) Unwrap() error {
	if r.gone() {
		return unix.ENETUNREACH
	}
	return nil
}

// loopback is the only device that belongs to no network: connections there that are allowed by name do not need the
// app.
const loopback = "lo"

// Control implements link.Binder: it passes the socket to the app before the socket is connected. A socket that belongs
// to no link is not passed.
func (h *Bridge) Control(l link.Link) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		if l.Name == loopback || l.Name == "" {
			return nil
		}
		var err error
		if e := c.Control(func(fd uintptr) { err = h.bind(l.Handle, int(fd)) }); e != nil {
			err = e
		}
		var r refusal
		switch {
		case errors.As(err, &r) && r.gone():
			return fmt.Errorf("bind to %s: %w", l.Name, r) // not a lack of rights, as a BindError is
		case err != nil:
			return &link.BindError{Link: l.Name, Err: err}
		}
		return nil
	}
}

func (h *Bridge) bind(handle uint64, fd int) error {
	answer := make(chan error, 1)
	select {
	case h.sock <- bindRequest{handle, fd, answer}:
		return <-answer
	case <-h.gone:
		return ErrGone
	}
}

// serveBinds passes sockets one after the other, in about a tenth of a millisecond each.
func (h *Bridge) serveBinds() {
	defer h.end()
	for {
		select {
		case <-h.gone:
			return
		case r := <-h.sock:
			errno, err := h.pass(r)
			switch {
			case err != nil:
				r.answer <- errors.Join(ErrGone, err)
				return
			case errno != 0:
				r.answer <- refusal{errno}
			default:
				r.answer <- nil
			}
		}
	}
}

// pass sends one socket and waits for the app's answer. An error means that the app is gone.
func (h *Bridge) pass(r bindRequest) (unix.Errno, error) {
	_ = h.binds.SetDeadline(time.Now().Add(replyTime))
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], r.handle)
	if _, _, err := h.binds.WriteMsgUnix(b[:], unix.UnixRights(r.fd), nil); err != nil {
		return 0, fmt.Errorf("pass a socket: %w", err)
	}
	if _, err := io.ReadFull(h.binds, b[:4]); err != nil {
		return 0, fmt.Errorf("wait for a socket to be bound: %w", err)
	}
	return unix.Errno(binary.BigEndian.Uint32(b[:4])), nil
}
