package systemtest

import (
	"net/http"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestRefusalsAreRemembered fetches an object twice: the findings of the first download are not tested again.
func TestRefusalsAreRemembered(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Fault
	}{
		{"R137 no ranges", NoRanges()},
		{"R137 Accept-Ranges: none", RangesNone()},
		{"R137 HTTP/1.0", HTTP10()},
		{"R137 R102 ignores ranges that it announces", IgnoresRange()},
		{"R137 R77 403 to ranged requests", If(ranged, Status(403))},
		{"R137 R77 416 to ranged requests", If(ranged, Status(416))},
	} {
		for _, codings := range []string{"", "gzip"} {
			if codings != "" && c.name == "R137 R77 416 to ranged requests" {
				continue // for a later range, a 416 means that the object has shrunk (R103)
			}
			t.Run(c.name+", codings "+codings, func(t *testing.T) {
				t.Parallel()
				s := New(t, Object{Size: mid}, c.fault, RateLimit(paced))
				r := newRig(t, s, settings(), "wifi", "lte")
				h := http.Header{}
				if codings != "" {
					h.Set("Accept-Encoding", codings)
				}
				once := func() int {
					before := len(s.Requests())
					whole(t, r.get(h), s.Object())
					noneLeft(t, limit, transfers...)
					return len(s.Requests()) - before
				}
				// On a busy machine, the body may arrive before the answer to a ranged request, which proves nothing, or a request
				// is repeated over the other link, so that two are needed.
				made := []int{once()}
				for len(made) < 7 {
					n := once()
					if made = append(made, n); n == 1 {
						return
					}
				}
				t.Errorf("requests of the downloads, one after another: %v", made)
			})
		}
	}
	t.Run("R80 R137 a 200 to an If-Range says nothing of ranges", func(t *testing.T) {
		t.Parallel()
		s := New(t, Object{Size: mid}, RateLimit(paced))
		r := newRig(t, s, settings(), "wifi", "lte")
		whole(t, r.get(http.Header{"Range": {"bytes=100-900000"}, "If-Range": {`"v0"`}}), s.Object())
		whole(t, r.get(nil), s.Object())
		if r.carried("lte") == 0 {
			t.Error("the next GET came over one link")
		}
	})
	t.Run("R118 a link whose address the URL does not serve is left out, until another one is needed", func(t *testing.T) {
		t.Parallel()
		s := New(t, Object{Size: mid}, OnNode(1, Status(403)), RateLimit(paced))
		r := newRig(t, s, settings(), "wifi", "lte")
		count := func() (n int) {
			for _, q := range s.Requests() {
				n += q.Node
			}
			return n
		}
		whole(t, r.get(nil), s.Object())
		before := count()
		if before == 0 {
			t.Fatal("the second link was not tried")
		}
		whole(t, r.get(nil), s.Object())
		if n := count() - before; n != 0 {
			t.Errorf("%d more requests over the link that was refused", n)
		}
		r.source.Set(named("lte")...)
		until(t, "the link is down", limit, func() bool { return r.state("wifi") == "down" })
		if got := r.get(nil); got.status != http.StatusForbidden {
			t.Errorf("%v", got)
		}
	})
}
