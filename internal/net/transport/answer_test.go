package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// A version is the same whether its response was divided, passed through, or came from net/http.
func TestIdentify(t *testing.T) {
	for name, faults := range map[string][]origintest.Fault{
		"entity tag": nil, "weak": {origintest.WeakETag()}, "date": {origintest.LastModifiedOnly(time.Hour)},
		"young date": {origintest.LastModifiedOnly(time.Second)}, "none": {origintest.NoValidator()}, "no ranges": {origintest.NoRanges()},
		"unknown length": {origintest.InChunks(), origintest.NoRanges()}, "two tags": {origintest.Add("Etag", `"v2"`)},
		"coded": {origintest.Set("Content-Encoding", "gzip")}, "location": {origintest.Set("Content-Location", "/x")},
	} {
		t.Run(name, func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: mid}, faults...)
			tr := newTransport(t, s, "wifi", "lte")
			ask := func(rt http.RoundTripper, r *http.Request) Identity {
				resp, err := rt.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				return Identify(resp)
			}
			for _, field := range []string{"", "bytes=1000-"} {
				r := get(t, s.URL())
				if field != "" {
					r.Header.Set("Range", field)
				}
				divided := ask(tr, r)
				for how, got := range map[string]Identity{
					"passed": ask(tr, r.WithContext(With(t.Context(), func(o *Options) { o.Undivided = "mine" }))), "net/http": ask(&http.Transport{DisableKeepAlives: true, DisableCompression: true}, r),
				} {
					if got != divided {
						t.Errorf("%q %s: %+v, divided %+v", field, how, got, divided)
					}
				}
				if divided.Total != mid && name != "unknown length" {
					t.Errorf("%q: %+v", field, divided)
				}
			}
		})
	}
	t.Run("a 206 that says nothing", func(t *testing.T) {
		for _, lines := range [][]string{nil, {"bytes 0-9/*"}, {"bytes */10"}, {"x"}, {"bytes 0-9/10", "bytes 0-9/10"}} {
			resp := &http.Response{StatusCode: http.StatusPartialContent, ContentLength: 10, Header: http.Header{"Content-Range": lines}}
			if id := Identify(resp); id.Total != -1 {
				t.Errorf("%q: %+v", lines, id)
			}
		}
	})
}

// validFrom returns the error of a certificate that is outside of its time.
func validFrom(begin time.Time) error {
	return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: &x509.Certificate{NotBefore: begin}, Reason: x509.Expired}}
}

func TestFailureOf(t *testing.T) {
	deadline := &net.OpError{Op: "read", Err: context.DeadlineExceeded}
	for _, c := range []struct {
		attempt fault.Outcome
		err     error
		want    fault.Outcome
	}{
		{fault.Short, io.ErrUnexpectedEOF, fault.Short},
		{fault.Silence, io.ErrUnexpectedEOF, fault.Silence},
		{fault.Changed, io.ErrUnexpectedEOF, fault.Changed},
		{fault.Unreachable, io.ErrUnexpectedEOF, fault.Unreachable},
		{fault.Unreachable, &net.DNSError{IsNotFound: true}, fault.UnknownName},
		{fault.Unreachable, &net.DNSError{IsTimeout: true}, fault.SilentDNS},
		{fault.Unreachable, x509.UnknownAuthorityError{}, fault.BadCertificate},
		{fault.Unreachable, validFrom(time.Now().Add(time.Hour)), fault.WrongClock},
		{fault.Unreachable, validFrom(time.Now().Add(-time.Hour)), fault.BadCertificate},
		{fault.Unreachable, tls.AlertError(40), fault.BadTLS},
		{fault.Unreachable, syscall.ECONNREFUSED, fault.PortClosed},
		{fault.Unreachable, syscall.ENETUNREACH, fault.NoRoute},
		{fault.Unreachable, deadline, fault.Timeout},
		{fault.Reset, syscall.ECONNRESET, fault.Reset},
		{fault.Denied, link.ErrOffLink, fault.OffLink},
		{fault.Denied, link.ErrRebound, fault.Rebound},
		{fault.Denied, link.ErrDenied, fault.Denied},
		{fault.Denied, link.ErrUpstreamRefused, fault.UpstreamDenied},
		{fault.Busy, deadline, fault.Busy},
		{fault.NoSlot, deadline, fault.NoSlot},
		{fault.Unreachable, &link.BindError{Link: "lte", Err: syscall.EPERM}, fault.Unbound},
	} {
		err := fmt.Errorf("get: %w", &engine.AttemptError{Link: "lte", Outcome: c.attempt, RetryAfter: time.Second, Err: c.err})
		if got := FailureOf(err); got != (Failure{c.want, "lte", time.Second}) {
			t.Errorf("%v, %v: %+v, want %v", c.attempt, c.err, got, c.want)
		}
	}
	for err, want := range map[error]Failure{
		nil:                       {Outcome: fault.Unknown},
		ErrNoLink:                 {Outcome: fault.NoLink},
		context.Canceled:          {Outcome: fault.Unknown},
		&LinkError{"lte", io.EOF}: {Outcome: fault.Reset, Link: "lte"},
		&LinkError{"lte", errors.New("malformed")}: {Outcome: fault.Unknown, Link: "lte"},
	} {
		if got := FailureOf(err); got != want {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
}

// Credentials of an unknown scheme go out once, unless their owner says that they may be repeated. Bytes of passed-through
// requests are counted for their link.
func TestRepeatable(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
	tr := newTransport(t, s, "wifi", "lte")
	for _, vouched := range []bool{false, true} {
		for credentials, divided := range map[string]bool{"Bearer x": true, "Custom x": vouched, "Digest x": false, "NTLM x": false} {
			r := get(t, s.URL())
			r.Header.Set("Authorization", credentials)
			var used Usage
			ctx := withUsage(t.Context(), &used)
			if vouched {
				ctx = With(ctx, func(o *Options) { o.Repeatable = true })
			}
			resp, err := tr.RoundTrip(r.WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			var sum int64
			for _, l := range used.Links() {
				sum += l.Bytes - l.Waste
			}
			if n != mid || err != nil || sum != mid || (used.Reason() == "") != divided || (len(used.Links()) == 2) != divided {
				t.Errorf("%s, vouched for: %v: %d bytes, %v, %+v, %q", credentials, vouched, n, err, used.Links(), used.Reason())
			}
			known := !strings.HasPrefix(credentials, "Digest") && !strings.HasPrefix(credentials, "NTLM")
			if reason := OneTime(r.Header); (reason == "") != known {
				t.Errorf("%s: %q", credentials, reason)
			}
		}
	}
}
