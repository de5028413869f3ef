package direct

import (
	"errors"
	"net/http"
	"time"

	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/link"
)

// forgottenAfter is how long a request on a kept connection may stay without any acknowledgment before it is sent on
// another one. The kernel has repeated it a few times by then.
const forgottenAfter = time.Second

// errForgotten means that nothing on a kept connection reaches the other end any more: a NAT has forgotten it, or the
// host has gone.
var errForgotten = errors.New("the kept connection is dead")

// replays reports whether a request may be sent a second time on another connection.
func replays(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return r.Body == nil || r.Body == http.NoBody
	}
	return false
}

// expectAck ends the request with errForgotten if the other end of its kept connection acknowledges nothing, until the
// returned function is called.
func (x *underway) expectAck(c *conn.Conn) (answered func()) {
	if c == nil || !c.HasSocket() {
		return func() {}
	}
	timer := time.AfterFunc(forgottenAfter, func() {
		if v := link.VitalsOf(c); v.Owed && v.Heard >= forgottenAfter {
			x.cancel(errForgotten)
		}
	})
	return func() { timer.Stop() }
}
