package daemon

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/origin/origintest"
)

// TestRefusedLater: an origin answers some requests and refuses later ones, over both links. One response could have served the
// client, so the one in reserve does.
func TestRefusedLater(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Fault
		field http.Header
	}{
		{name: "R250 a quota of requests", fault: AfterRequests(12, Status(403))},
		{name: "R250 the URL is gone", fault: AfterRequests(20, Status(410))},
		{name: "R250 another version", fault: AfterRequests(20, NewVersion())},
		{name: "R250 a client that takes any coding", fault: AfterRequests(20, Status(401)), field: get("Accept-Encoding", "gzip")},
		{name: "R250 too many requests", fault: AfterRequests(8, Busy(429, 60))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := New(t, Object{Size: 9<<20 + 12345}, RateLimit(4<<20), c.fault)
			r := newRig(t, s, settings(), "wifi", "lte")
			began := time.Now()
			whole(t, fetch(client(t, r.url), s.URL(), c.field), s.Object())
			t.Logf("%d requests, %v", len(s.Requests()), time.Since(began))
		})
	}
}

// TestOnce: every URL may be requested only once, or twice. The first response completes the transfer.
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
