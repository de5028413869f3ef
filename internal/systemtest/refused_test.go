package systemtest

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestRefusedLater: an origin answers some requests and refuses later ones, over both links. One response could have served the
// client, so the one in reserve does.
func TestRefusedLater(t *testing.T) {
	const size = 9<<20 + 12345
	for _, c := range []struct {
		name  string
		more  int // requests that are answered after the one for the reserve
		fault Fault
		field http.Header
	}{
		{name: "R250 a quota of requests", more: 4, fault: Status(403)},
		{name: "R250 the URL is gone", more: 4, fault: Status(410)},
		{name: "R250 another version", more: 4, fault: NewVersion()},
		{name: "R250 a client that takes any coding", more: 4, fault: Status(401), field: get("Accept-Encoding", "gzip")},
		{name: "R250 too many requests", more: 4, fault: Busy(429, 60)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var reserve, refused atomic.Int64
			late := func(r *Request) bool {
				if from, ok := strings.CutPrefix(r.Range, "bytes="); ok && from != "0-" && strings.HasSuffix(from, fmt.Sprintf("-%d", size-1)) {
					reserve.CompareAndSwap(0, int64(r.N))
				}
				if n := reserve.Load(); n == 0 || int64(r.N) <= n+int64(c.more) {
					return false
				}
				refused.Add(1)
				return true
			}
			s := New(t, Object{Size: size}, RateLimit(4<<20), If(late, c.fault))
			r := newRig(t, s, settings(), "wifi", "lte")
			whole(t, fetch(client(t, r.url), s.URL(), c.field), s.Object())
			if refused.Load() == 0 {
				t.Error("no request was refused")
			}
			t.Logf("%d requests, %d refused; %d was for the reserve", len(s.Requests()), refused.Load(), reserve.Load())
		})
	}
}

// TestOnce: every URL may be requested only a few times. The first response completes the transfer.
func TestOnce(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		begin := func(t *testing.T) *rig {
			t.Parallel()
			late := func(r *Request) bool { return r.Nth > most }
			return newRig(t, New(t, Object{Size: 9<<20 + 12345}, RateLimit(4<<20), If(late, Status(403))), settings(), "wifi", "lte")
		}
		for name, h := range map[string]http.Header{
			"": nil, " in any coding": get("Accept-Encoding", "gzip"), " from its start": get("Range", "bytes=0-"),
		} {
			t.Run(fmt.Sprintf("R252 a URL with a query, %d%s", most, name), func(t *testing.T) {
				r := begin(t)
				got := fetch(client(t, r.url), r.server.URL()+"?token=1", h)
				if h.Get("Range") != "" && got.status == http.StatusPartialContent {
					got.status = http.StatusOK
				}
				whole(t, got, r.server.Object())
			})
		}
		t.Run(fmt.Sprintf("R252 the second URL of a host, %d", most), func(t *testing.T) {
			r := begin(t)
			if got := fetch(client(t, r.url), r.server.URL(), nil); most == 1 && got.err == nil {
				t.Error("the first one was served")
			}
			whole(t, fetch(client(t, r.url), r.server.URL()+"2", nil), r.server.Object())
		})
	}
}
