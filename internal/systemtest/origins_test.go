package systemtest

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// one checks that a single request was made.
func one(t *testing.T, seen []Request) {
	if len(seen) != 1 {
		t.Errorf("%d requests, want 1", len(seen))
	}
}

// initial returns the number of requests made before any answer. On a busy machine, the first answer may be so late that the
// request is repeated over the other link.
func initial(seen []Request) int {
	if len(seen) > 1 && seen[1].Node != seen[0].Node && seen[1].Range == seen[0].Range {
		return 2
	}
	return 1
}

// honest checks the fields that every request except the first carries (R94, R95).
func honest(t *testing.T, seen []Request) {
	first := initial(seen)
	for i, r := range seen {
		if i >= first && (r.Header.Get("If-Range") != `"v1"` || r.Range == "") {
			t.Errorf("R94: request %d has Range %q, If-Range %q", i+1, r.Range, r.Header.Get("If-Range"))
		}
		if m := r.Header.Get("If-Match"); m != "" {
			t.Errorf("R95: request %d has If-Match %q", i+1, m)
		}
		if enc := r.Header.Get("Accept-Encoding"); i >= first && enc != "" && enc != "identity" {
			t.Errorf("R84: request %d has Accept-Encoding %q", i+1, enc)
		}
	}
}

// conditions checks that the client's conditions are sent once (R78).
func conditions(t *testing.T, seen []Request) {
	first := initial(seen)
	for i, r := range seen {
		if has := r.Header.Get("If-None-Match") != ""; has != (i < first) {
			t.Errorf("R78: request %d has If-None-Match: %v", i+1, has)
		}
	}
}

// sameFields checks that all requests of a transfer carry the client's fields.
func sameFields(t *testing.T, seen []Request) {
	for i, r := range seen {
		agent := r.Header.Get("User-Agent")
		if r.Header.Get("Accept-Language") != "de" || r.Header.Get("Cookie") != "a=b" ||
			agent != seen[0].Header.Get("User-Agent") {
			t.Errorf("R84: request %d has %v", i+1, r.Header)
		}
	}
}

// TestOrigins compares a client's answers through the proxy, over one link and over two, with those of direct requests.
func TestOrigins(t *testing.T) {
	names := map[string]bool{}
	for _, l := range lies {
		if names[l.name] {
			t.Fatalf("two rows are called %q", l.name)
		}
		names[l.name] = true
		if l.object.Size == 0 && !l.empty {
			l.object.Size = mid
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			for _, codings := range []string{"", "gzip, deflate"} {
				h := l.header.Clone()
				if h == nil {
					h = http.Header{}
				}
				want := expect{l.want, l.use}
				how := "started by a range"
				if codings != "" {
					how = "started by the client's GET"
					h.Set("Accept-Encoding", codings)
					if l.offered != nil {
						want = *l.offered
					}
				}
				direct := fetch(client(t, nil), New(t, l.object, l.faults...).URL(), h)
				for _, links := range [][]string{{"wifi"}, {"wifi", "lte"}} {
					// No fatal failures from here on, since this code runs in other goroutines.
					faults := append(slices.Clone(l.faults), RateLimit(paced))
					if want.use == both && len(links) == 2 {
						// The whole object in one answer takes seconds, so the second link has time to ask, however busy the
						// machine is.
						faults = append(faults, If(func(q *Request) bool { return q.Range == "" }, RateLimit(paced/8)))
					}
					s := New(t, l.object, faults...)
					r := newRig(t, s, settings(), links...)
					all.Go(func() {
						got := r.get(h)
						// A first request that was repeated has two answers, and chance decides which one the client gets. A
						// repeated request proves nothing about the use of one link. Neither does an object that was complete
						// before a busy machine let the second link answer, or that the second link delivered alone since the first
						// was late.
						again := func() bool {
							if all := s.Requests(); len(all) > 0 && (all[0].Node != 0 || initial(all) > 1) {
								return true
							}
							return want.use == alone && repeated(s.Requests()) || want.use == both && len(links) == 2 && r.carried("lte") == 0
						}
						for tries := 0; tries < 5 && again(); tries++ {
							s = New(t, l.object, faults...)
							r = newRig(t, s, settings(), links...)
							got = r.get(h)
						}
						what := fmt.Sprintf("%s, links %v", how, links)
						for _, p := range []*path{r.wifi, r.lte} {
							// Two connections, and one in place of a third that is being closed.
							if n := p.inUse(); n > 3 && len(l.faults) == 0 {
								t.Errorf("R138: %s, %s: %d connections at an instant", what, p.name, n)
							}
						}
						l.compare(t, what, want.want, direct, got, s.Object())
						if len(links) == 2 {
							lte := r.carried("lte")
							if want.use == both && lte == 0 || want.use == alone && lte > 0 {
								t.Errorf("%s: the second link carried %d bytes", what, lte)
							}
							if l.check != nil {
								l.check(t, s.Requests())
							}
						}
						if t.Failed() {
							for _, q := range s.Requests() {
								t.Logf("%s: node %d conn %d seq %d pipelined %v %q If-Range %q sent %d", what, q.Node, q.Conn,
									q.Seq, q.Pipelined, q.Range, q.Header.Get("If-Range"), q.Sent)
							}
						}
					})
				}
			}
			all.Wait()
		})
	}
}

// repeated reports whether a request reached both nodes.
func repeated(all []Request) bool {
	for i, q := range all {
		if slices.ContainsFunc(all[:i], func(o Request) bool { return o.Node != q.Node && o.Range == q.Range }) {
			return true
		}
	}
	return false
}

// compare checks an answer against that of a direct request.
func (l *lie) compare(t *testing.T, what string, want outcome, direct, got seen, o Object) {
	if want == noticed {
		if got.err != nil || got.status >= 500 {
			return
		}
		want = same
	}
	if want == either {
		switch {
		case got.err != nil || got.status >= 500:
			want = broken
		case direct.err != nil:
			want = right
		default:
			want = same
		}
	}
	switch want {
	case broken:
		if got.err == nil && got.status < 500 {
			t.Errorf("%s: no error: %v", what, got)
		}
		// The proxy's own answers contain no bytes of the object.
		if w := wrong(o, got.body, 0); w != "" && got.status < 500 {
			t.Errorf("%s: %s", what, w)
		}
	case right:
		if got.err != nil || got.status != http.StatusOK || int64(len(got.body)) != o.Size {
			t.Errorf("%s: %v, want the object of %d bytes", what, got, o.Size)
		}
		if w := wrong(o, got.body, 0); w != "" {
			t.Errorf("%s: %s", what, w)
		}
	case same:
		if direct.err != nil {
			t.Errorf("directly: %v", direct)
			return
		}
		if got.err != nil || got.status != direct.status || !bytes.Equal(got.body, direct.body) {
			t.Errorf("%s: %v, want %v", what, got, direct)
		}
		if d := differ(direct, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// differ returns the fields in which a proxied answer differs from the direct one. It ignores those of the connection and the
// framing, a Date that the origin left out (RFC 9110 section 6.6.1), and the fields that net/http leaves out of a 304.
func differ(direct, got seen) string {
	var d []string
	all := direct.header.Clone()
	maps.Copy(all, got.header)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := direct.header[name], got.header[name]
		switch name {
		case "Connection", "Keep-Alive", "Content-Length", "Trailer":
			continue
		case "Date":
			if was == nil {
				continue
			}
		case "Content-Type":
			if got.status == http.StatusNotModified {
				continue
			}
		}
		if !slices.Equal(was, is) {
			d = append(d, fmt.Sprintf("%s: %q, directly %q", name, is, was))
		}
	}
	return strings.Join(d, "; ")
}
