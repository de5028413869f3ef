package intercept

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// waitTime is how long a client that waits for its server to speak first is silent. One that does not accept the
// certificate leaves sooner.
const waitTime = 2 * time.Second

// Visit is an opened connection. Many programs verify a certificate after the handshake, and leave without an alert if
// they do not accept it: a connection without a request is the only sign.
type Visit struct {
	of            *Interceptor
	program, host string
	began         time.Time
	asked         atomic.Bool
}

// Asked records a request. The program accepts certificates of the authority.
func (v *Visit) Asked() {
	if v != nil && !v.asked.Swap(true) {
		v.of.Pins.accept(v.program)
		v.of.forgive(v.program)
	}
}

// forgive forgets that a program left without a request.
func (i *Interceptor) forgive(program string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reported = slices.DeleteFunc(i.reported,
		func(u Unopened) bool { return u.Reason == Closed && u.Program == program })
}

// NotHTTP records that the connection carries something that is not HTTP.
func (v *Visit) NotHTTP() {
	v.asked.Store(true)
	v.of.Pins.other(v.program, v.host)
	v.of.report(v.host, OtherProtocol)
}

// Ended records the end of the connection.
func (v *Visit) Ended() {
	if v == nil || v.asked.Load() {
		return
	}
	n := 1
	if time.Since(v.began) >= waitTime {
		n = maxClosed
	}
	v.of.left(v.program, v.host, n)
}

// left records that connections of a program to host ended without a request.
func (i *Interceptor) left(program, host string, n int) {
	if i.Pins.closed(program, host, n) {
		i.note(Unopened{Host: host, Reason: Closed, Program: program})
		if i.Pins.accepted(program) { // meanwhile
			i.forgive(program)
		}
	}
}

// leftHandshake reports whether a handshake failed because the client left without an alert.
func leftHandshake(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
