package proxy_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

func TestOwnAnswers(t *testing.T) {
	attempt := func(outcome fault.Outcome, err error) error {
		return fmt.Errorf("get: %w", &engine.AttemptError{Op: "dial", Link: "secret0", Outcome: outcome, Err: err})
	}
	op := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)}
	}
	busy := &engine.AttemptError{Op: "head", Outcome: fault.Busy, RetryAfter: 1500 * time.Millisecond, Err: errors.New("503")}
	plain := errors.New("secret0")
	for _, tt := range []struct {
		name          string
		err           error
		status, cause string
		retry         []string
	}{
		{"no link", fmt.Errorf("x: %w", engine.ErrNoLink), "503", "destination_unavailable", []string{"5"}},
		{"unbound", attempt(fault.Unbound, plain), "503", "proxy_configuration_error", []string{"5"}},
		{
			"bind", &link.DialError{Op: link.OpBind, Err: &link.BindError{Link: "secret0", Err: syscall.EPERM}}, "503",
			"proxy_configuration_error",
			[]string{"5"},
		},
		{
			"no slot", attempt(fault.NoSlot, &link.NoSlotError{Link: "secret0", Host: "private.example", Most: 1}), "503",
			"connection_limit_reached",
			[]string{"5"},
		},
		{
			"upstream", attempt(fault.Unwanted, &link.DialError{Op: link.OpConnect, Err: fmt.Errorf("%w (secret0)", link.ErrUpstreamRefused)}), "502",
			"destination_ip_prohibited", nil,
		},
		{"busy", busy, "503", "destination_unavailable", []string{"2"}},
		{
			"own listener by name", attempt(fault.Unreachable, &link.DialError{Op: link.OpRefuse, Err: plain}), "403",
			"destination_ip_prohibited", nil,
		},
		{"refused", attempt(fault.Unreachable, op(syscall.ECONNREFUSED)), "502", "connection_refused", nil},
		{"no route", attempt(fault.Unreachable, op(syscall.ENETUNREACH)), "502", "destination_ip_unroutable", nil},
		{"timeout", attempt(fault.Unreachable, op(syscall.ETIMEDOUT)), "504", "connection_timeout", nil},
		{"deadline", attempt(fault.Unreachable, context.DeadlineExceeded), "504", "connection_timeout", nil},
		{"dns", attempt(fault.Unreachable, &net.DNSError{Err: "no such host", IsNotFound: true}), "502", "dns_error", nil},
		{"dns timeout", attempt(fault.Unreachable, &net.DNSError{IsTimeout: true}), "504", "dns_timeout", nil},
		{"certificate", attempt(fault.Unreachable, x509.UnknownAuthorityError{}), "502", "tls_certificate_error", nil},
		{"unreachable", attempt(fault.Unreachable, plain), "502", "destination_unavailable", nil},
		{"silent", attempt(fault.Silence, plain), "504", "http_response_timeout", nil},
		{"reset", attempt(fault.Reset, op(syscall.ECONNRESET)), "502", "connection_terminated", nil},
		{"unanswered", attempt(fault.Unanswered, plain), "502", "connection_terminated", nil},
		{"changed", attempt(fault.Changed, plain), "502", "http_response_incomplete", nil},
		{"bad range", attempt(fault.BadRange, plain), "502", "http_protocol_error", nil},
		{"canceled by the machine", attempt(fault.Canceled, plain), "502", "proxy_internal_error", nil},
		{"unknown", plain, "502", "connection_terminated", nil},
	} {
		t.Run("R68 R141 R195 R196 "+tt.name, func(t *testing.T) {
			g := start(t)
			g.f.getErr, g.f.dialErr = tt.err, tt.err
			for _, request := range []string{
				"GET http://private.example/canary HTTP/1.1\r\nHost: x", "CONNECT private.example:443 HTTP/1.1\r\nHost: x",
			} {
				c := g.send(request + "\r\n\r\n")
				head := c.wantHead(tt.status)
				body, err := c.rest() // R141: has a length and closes
				if err != nil || !strings.HasPrefix(body, "Tributary (proxy): ") {
					t.Errorf("body %q, %v", body, err)
				}
				for _, f := range []struct{ name, want string }{
					{"Proxy-Status", "tributary; error=" + tt.cause},
					{"Cache-Control", "no-store"},
					{"Content-Type", "text/plain; charset=utf-8"},
					{"Content-Length", fmt.Sprint(len(body))},
				} {
					if got := fieldsOf(head, f.name); !slices.Equal(got, []string{f.want}) {
						t.Errorf("%s %q, want %q", f.name, got, f.want)
					}
				}
				if got := fieldsOf(head, "Retry-After"); !slices.Equal(got, tt.retry) {
					t.Errorf("Retry-After %q, want %q", got, tt.retry)
				}
				for _, canary := range []string{"canary", "private", "secret0"} {
					if strings.Contains(head+body, canary) {
						t.Errorf("R196: answer names %q: %q", canary, head+body)
					}
				}
			}
			if s := g.log.String(); s != "" {
				t.Errorf("R195: log: %s", s)
			}
		})
	}
}

func TestOriginFails(t *testing.T) {
	g := start(t)
	for _, tt := range []struct{ name, raw string }{
		{"R61 closes without an answer", ""},
		{"R39 response coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n"},
		{"R40 two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"},
		{"not HTTP", "SSH-2.0-x\r\n\r\n"},
	} {
		for _, line := range []string{"GET", "POST"} {
			t.Run(tt.name+" "+line, func(t *testing.T) {
				o := serve(t, func(c *conn) {
					_, _ = c.head()
					c.send(tt.raw)
				})
				c := g.send(line + " " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n")
				c.wantHead("502")
				if n := o.dials(); n != 1 {
					t.Errorf("%d connections, want 1", n)
				}
			})
		}
	}
}
