package systemtest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestAhead: if the path or an earlier answer suggests a large object, the second link sends a request before the first response
// arrives, and whatever its answer is, the client gets the object.
func TestAhead(t *testing.T) {
	late := OnNode(0, If(func(r *Request) bool { return r.Nth == 1 }, SlowStart(100*time.Millisecond)))
	for _, c := range []struct {
		name   string
		ext    string
		size   int64
		faults []Fault
		fields http.Header
		both   bool // both links carry part of it
		asked  bool // the second link sends a request ahead
	}{
		{name: "an honest origin", ext: ".iso", both: true, asked: true},
		{name: "the client's own GET", ext: ".iso", fields: get("Accept-Encoding", "gzip"), both: true, asked: true},
		{name: "a path that says nothing"},
		{name: "no ranges", ext: ".iso", faults: []Fault{NoRanges()}, asked: true},
		{name: "no ranges on the second link", ext: ".iso", faults: second(IgnoresRange()), asked: true},
		{name: "another version on the second link", ext: ".iso", faults: second(Set("Etag", `"v2"`), func(x *Exchange) { x.Object.Seed++ }), asked: true},
		{name: "refused on the second link", ext: ".iso", faults: second(Status(403)), asked: true},
		{name: "a small object", ext: ".iso", size: threshold - 1, asked: true},
		{name: "a little more than a first range", ext: ".iso", size: threshold + 1000, asked: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.size == 0 {
				c.size = mid
			}
			s := New(t, Object{Size: c.size}, append([]Fault{late, RateLimit(paced)}, c.faults...)...)
			r := newRig(t, s, settings(), "wifi", "lte")
			whole(t, fetch(client(t, r.url), s.URL()+c.ext, c.fields), s.Object())
			ahead := 0
			for _, q := range s.Requests() {
				// The range begins with the bytes of a spot check.
				var from int
				_, err := fmt.Sscanf(q.Range, "bytes=%d-", &from)
				if q.Node == 1 && q.Header.Get("If-Range") == "" && err == nil && from < threshold && from >= threshold-4<<10 {
					ahead++
				}
			}
			if (ahead == 1) != c.asked || ahead > 1 {
				t.Errorf("%d requests ahead", ahead)
			}
			if n := r.carried("lte"); c.both && n == 0 {
				t.Error("the second link carried nothing")
			}
		})
	}
}
