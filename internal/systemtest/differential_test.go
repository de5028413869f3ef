package systemtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestDifferential sends random requests to random origins, directly and through the proxy, the downloader, the gateway or opened
// tunnels, over one link or two.
// The answer must equal that of a direct fetch of one of the origin's versions, or be a visible error. It runs 1,000 cases, or
// TRIBUTARY_CASES (`make fuzz`: 20,000), from TRIBUTARY_SEED or a seed from the clock. A failure reports the number of its case,
// and TRIBUTARY_CASE runs only that case.
func TestDifferential(t *testing.T) {
	n := number(t, "TRIBUTARY_CASES", 1000)
	seed := number(t, "TRIBUTARY_SEED", uint64(time.Now().UnixNano()))
	first := uint64(0)
	if only := number(t, "TRIBUTARY_CASE", n); only < n {
		first, n = only, only+1
	}
	t.Logf("TRIBUTARY_SEED=%d", seed)
	w := newTwin(t, Object{Size: 1})
	var hosts []string
	for i := first; i < n; i++ {
		for _, ext := range extensions[1:] {
			u, err := url.Parse(w.url(fmt.Sprintf("d%d%s", i, ext), true))
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, u.Host)
		}
	}
	opened := map[int]*doors{1: w.openDoors(1, hosts), 2: w.openDoors(2, hosts)}
	var next, equal, visible atomic.Uint64
	var byWay [ways]atomic.Uint64
	next.Store(first)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= n || t.Failed() {
					return
				}
				c := draw(rand.New(rand.NewPCG(seed, i)))
				c.name = fmt.Sprintf("d%d%s", i, c.ext)
				byWay[c.way].Add(1)
				same, seen := c.run(t, w, opened[c.links])
				equal.Add(same)
				visible.Add(seen)
				if same+seen < 2 {
					t.Errorf("TRIBUTARY_SEED=%d TRIBUTARY_CASE=%d: %v", seed, i, c)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d cases: %d answers equal to a direct fetch, %d visible errors", n-first, equal.Load(), visible.Load())
	for way := range byWay {
		t.Logf("%s: %d cases", wayNames[way], byWay[way].Load())
	}
	if e, v := equal.Load(), visible.Load(); v > e/2 {
		t.Errorf("%d visible errors and only %d answers: the cases show little", v, e)
	}
}

// version is the result of a direct fetch of an object.
type version struct {
	object Object
	seen
}

// drawn is a random case: an origin with up to two versions of an object, and a request.
type drawn struct {
	name   string
	ext    string   // of the path: links send requests ahead for files that are probably large
	text   []string // descriptions of the drawn properties
	a, b   Object
	fields [2][]Fault // of each version's answers
	older  func(r *Request) bool
	faults []Fault // of both
	breaks []Fault // of both, but not of the direct fetches that define the correct result
	method string
	header http.Header
	h2     bool
	links  int
	way    int
}

// The ways in which a case is fetched. The last ones are for https only.
const (
	byTheProxy = iota
	byDownload
	byResumedDownload
	byTheGateway
	inTunnel
	inTunnel2
	ways
)

var wayNames = [ways]string{"proxy", "get", "get, resumed", "gateway", "run, HTTP/1.1", "run, HTTP/2"}

// extensions are those of paths, the first twice as frequent.
var extensions = []string{"", "", ".iso"}

func (c *drawn) String() string {
	return fmt.Sprintf("%s; %d links, h2 %v, %s, %s %v", strings.Join(c.text, "; "), c.links, c.h2, wayNames[c.way], c.method, c.header)
}

// pick draws one of several named things.
func pick[T any](c *drawn, rng *rand.Rand, what string, all []choice[T]) T {
	x := all[rng.IntN(len(all))]
	if x.name != "" {
		c.text = append(c.text, what+" "+x.name)
	}
	return x.value
}

type choice[T any] struct {
	name  string
	value T
}

func draw(rng *rand.Rand) *drawn {
	c := &drawn{method: http.MethodGet, header: http.Header{}, links: 1 + rng.IntN(2)}
	c.way = []int{byTheProxy, byTheProxy, byTheProxy, byDownload, byDownload, byResumedDownload, byTheGateway, byTheGateway, inTunnel, inTunnel2}[rng.IntN(10)]
	c.h2 = c.way >= byTheGateway || rng.IntN(3) == 0
	type faults = choice[[]Fault]
	f := func(name string, all ...Fault) faults { return faults{name, all} }
	size := []int64{0, 1, 999, threshold - 1, threshold, threshold + 1, 2 * threshold, 3*threshold + 77}[rng.IntN(8)]
	if rng.IntN(2) == 0 {
		size = rng.Int64N(5 * threshold)
	}
	c.a = Object{Size: size, Seed: rng.Uint64()}.Defaults()
	c.text = append(c.text, fmt.Sprintf("%d bytes", size))
	pick(c, rng, "validators", []choice[func()]{
		{"", func() {}},
		{"", func() {}},
		{"weak", func() { c.a.ETag = `W/"v1"` }},
		{"none", func() { c.a.ETag, c.a.Modified = NoETag, NoModified }},
		{"tag only", func() { c.a.Modified = NoModified }},
		{"date only", func() { c.a.ETag = NoETag }},
		{"young date only", func() { c.a.ETag, c.a.Modified = NoETag, c.a.Date.Add(-time.Second) }},
	})()
	c.second(rng)

	// The faults common to both versions.
	common := []faults{
		f(""), f(""), f("Vary", Set("Vary", "Accept-Language")), f("Vary: *", Set("Vary", "*")),
		f("fields", Add("Set-Cookie", "a=1"), Add("Set-Cookie", "b=2"), Set("X-Thing", "x"), Set("Cache-Control", "no-transform")),
		f("disposition", Set("Content-Disposition", `attachment; filename="x"`)), f("language", Set("Content-Language", "de")),
		f("digest", Set("Content-Digest", "sha-256=:AAAA:"), Set("Repr-Digest", "sha-256=:AAAA:")), f("no type", Del("Content-Type")),
		f("place", Set("Content-Location", "/here")), f("gzip for who accepts it", Gzip()), f("coded", Set("Content-Encoding", "gzip")),
	}
	c.faults = append(c.faults, pick(c, rng, "with", common)...)
	c.faults = append(c.faults, pick(c, rng, "with", common)...)
	behaviour := []faults{f("")}
	for name, all := range partialAnswers(max(size, 7000)) {
		// A lie about the size that every part repeats looks like another object, and a field that only ranges lack is not noticed.
		if !strings.Contains(name, "total") && !strings.Contains(name, "no validator") {
			behaviour = append(behaviour, faults{name, all})
		}
	}
	slices.SortFunc(behaviour, func(a, b faults) int { return strings.Compare(a.name, b.name) }) // the map has no order
	switch rng.IntN(4) {
	case 0:
		c.faults = append(c.faults, pick(c, rng, "answers", behaviour)...)
	case 1:
		c.faults = append(c.faults, OnNode(1, pick(c, rng, "node 1 answers", behaviour)...))
	}
	framing := []faults{f("")}
	if !c.h2 {
		framing = append(framing, f("chunked", InChunks()), f("until close", CloseDelimited()), f("HTTP/1.0", HTTP10()),
			f("close", ConnectionClose()), f("closes early", OnSeq(2, ClosesEarly())), f("interim", Interim("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")))
	}
	c.faults = append(c.faults, pick(c, rng, "framing", framing)...)
	if untilClose := strings.Contains(strings.Join(c.text, ";"), "until close"); rng.IntN(5) == 0 && !untilClose { // no visible end
		at := rng.Int64N(max(size, 1))
		c.breaks = append(c.breaks, pick(c, rng, "breaks:", []faults{
			f("resets", UntilNth(2, ResetAfter(at))), f("short", UntilNth(2, ShortBody(1+at/2))), f("resets node 1", OnNode(1, ResetAfter(at))),
			f("short on node 1", OnNode(1, ShortBody(1+at/2))),
		})...)
	}
	c.oddly(rng)
	c.request(rng)
	c.ext = extensions[rng.IntN(len(extensions))]
	return c
}

// oddly adds faults that a direct client of package net/http does not survive, or does not see.
func (c *drawn) oddly(rng *rand.Rand) {
	if rng.IntN(5) > 0 {
		return
	}
	of := func(name string, all ...Fault) choice[[]Fault] { return choice[[]Fault]{name, all} }
	// More bytes than the range, in parts that only Tributary asks for.
	later := func(r *Request) bool { return r.Header.Get("If-Range") != "" && c.header.Get("If-Range") == "" }
	odd := []choice[[]Fault]{of("surplus in parts", If(later, Del("Content-Length"), SurplusBody(1+rng.Int64N(3))))}
	if !c.h2 {
		icy := func(x *Exchange) { HTTP10()(x); x.Proto = "ICY" }
		odd = append(odd, of("surplus in chunked parts", If(later, InChunks(), SurplusBody(1))), of("HTTP/1.0 with chunks", HTTP10(), InChunks()),
			of("HTTP/1.0 with chunks and a length", HTTP10(), InChunks(), Set("Content-Length", "7")), of("ICY", icy),
			of("a space in a name", Set("X Powered By", "x")), of("no name", Set("", "x")), of("a length that is none", Set("Content Length", "5")),
			of("a control character", Set("X-Note", "a\x01b")), of("HTTP/1.0 with chunks for node 1", OnNode(1, HTTP10(), InChunks())))
	}
	c.breaks = append(c.breaks, pick(c, rng, "oddly:", odd)...)
}

// UntilNth applies the faults to the first n requests for a target.
func UntilNth(n int, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.Nth <= n }, faults...)
}

// second draws another version, which is served to some requests.
func (c *drawn) second(rng *rand.Rand) {
	c.b = c.a
	c.older = func(*Request) bool { return true }
	if rng.IntN(3) > 0 {
		return
	}
	c.b.Seed++
	for changed := false; !changed; {
		for range 1 + rng.IntN(2) {
			what := pick(c, rng, "changes", []choice[func() bool]{
				{"tag", func() bool { c.b.ETag = `"v2"`; return c.a.ETag != NoETag }},
				{"date", func() bool { c.b.Modified = c.a.Modified.Add(-time.Hour); return !c.a.Modified.Equal(NoModified) }},
				{"date is gone", func() bool { c.b.Modified = NoModified; return !c.a.Modified.Equal(NoModified) }},
				{"date appears", func() bool {
					was := c.a.Modified
					c.a.Modified, c.b.Modified = NoModified, c.a.Date.Add(-time.Hour)
					return !was.Equal(NoModified) || c.a.ETag != NoETag
				}},
				{"size", func() bool { c.b.Size++; return true }},
				{"type", func() bool { c.b.Type = "text/css"; return true }},
				{"place", func() bool { c.fields[1] = append(c.fields[1], Set("Content-Location", "/there")); return true }},
				{"place is gone", func() bool { c.fields[0] = append(c.fields[0], Set("Content-Location", "/there")); return true }},
			})
			changed = what() || changed
		}
	}
	at, salt := rng.Int64N(max(c.a.Size, 1)), rng.Int()
	c.older = pick(c, rng, "for", []choice[func(*Request) bool]{
		{"node 1", func(r *Request) bool { return r.Node == 0 }},
		{"later requests", func(r *Request) bool { return r.Nth < 2+salt%3 }},
		{"later parts", func(r *Request) bool {
			var from int64
			_, _ = fmt.Sscanf(r.Range, "bytes=%d-", &from)
			return from <= at
		}},
		{"some requests", func(r *Request) bool { return (int64(r.Nth)*2654435761+int64(salt))>>3%2 == 0 }},
	})
}

// request draws a request.
func (c *drawn) request(rng *rand.Rand) {
	size := max(c.a.Size, 1)
	from, to := rng.Int64N(size), rng.Int64N(size)
	from, to = min(from, to), max(from, to)
	if rng.IntN(2) == 0 {
		c.header.Set("Accept-Encoding", []string{"gzip", "identity", "gzip, br"}[rng.IntN(3)])
	}
	if c.way == byDownload || c.way == byResumedDownload {
		return
	}
	h := func(kv ...string) choice[http.Header] { return choice[http.Header]{strings.Join(kv, " "), get(kv...)} }
	tag := c.a.ETag
	asks := []choice[http.Header]{
		h(), h(), h(), h("Range", fmt.Sprintf("bytes=%d-%d", from, to)), h("Range", fmt.Sprintf("bytes=%d-", from)), h("Range", "bytes=0-"),
		h("Range", fmt.Sprintf("bytes=-%d", 1+from)), h("Range", "bytes=0-1,5-6"), h("Range", "bytes=9-2"), h("Range", fmt.Sprintf("bytes=%d-", size+from)),
		h("Range", fmt.Sprintf("bytes=%d-%d", from, to), "If-Range", tag), h("Range", fmt.Sprintf("bytes=%d-%d", from, to), "If-Range", `"v0"`),
		h("Cookie", "a=b"), h("Accept-Language", "de"),
	}
	if !strings.Contains(strings.Join(c.text, ";"), "for ranges") { // it would answer the condition differently for a range
		asks = append(asks, h("If-None-Match", tag), h("If-None-Match", `"v0"`))
	}
	for name, values := range pick(c, rng, "asks", asks) {
		c.header[name] = values
	}
	if rng.IntN(20) == 0 {
		c.method = http.MethodHead
	}
}

// versions sets up the origin. only is the version that all requests get, -1 for both.
func (c *drawn) versions(only int) Fault {
	return func(x *Exchange) {
		which := 1
		if only == 0 || only < 0 && c.older(x.Request) {
			which = 0
		}
		x.Object = []Object{c.a, c.b}[which]
		for _, f := range c.fields[which] {
			f(x)
		}
	}
}

// run runs the case and returns how many answers equaled a direct fetch and how many were visible errors.
func (c *drawn) run(t *testing.T, w *twin, d *doors) (equal, visible uint64) {
	var direct []version
	for i, o := range []Object{c.a, c.b} {
		u := w.plan(fmt.Sprintf("%s-only%d", c.name, i), c.h2, append([]Fault{c.versions(i)}, c.faults...)...)
		for node := range c.links {
			v := version{o, fetchBy(w.direct[node], c.method, u, c.header)}
			if direct = append(direct, v); v.err != nil {
				t.Logf("%s: directly: %v", c.name, v)
				return 0, 0
			}
		}
	}
	if c.alike(direct[0], direct[c.links]) {
		return 2, 0
	}
	u := w.plan(c.name, c.h2, slices.Concat([]Fault{c.versions(-1)}, c.faults, c.breaks)...)
	f := w.fronts[c.links]
	for range 2 {
		var got seen
		switch c.way {
		case byDownload:
			got = f.byGet(t, u, c.header)
		case byTheGateway:
			got = d.byGateway(t, c.method, u, c.header)
		case inTunnel:
			got = fetchBy(d.run, c.method, u, c.header)
		case inTunnel2:
			got = fetchBy(d.run2, c.method, u, c.header)
		case byResumedDownload:
			got = f.resumed(t, w.url(c.name+"-only0", c.h2), u, c.header, c.a.Size/2)
		default:
			got = f.byProxy(c.method, u, c.header)
		}
		differs := c.wrong(direct, got)
		switch {
		case differs != "":
			t.Logf("%s: %v\n%s", c.name, got, differs)
		case got.visible():
			visible++
		default:
			equal++
		}
	}
	return equal, visible
}

// alike reports whether the two versions have different bytes but equal properties, so that they cannot be distinguished.
func (c *drawn) alike(a, b version) bool {
	if c.a.Seed == c.b.Seed || c.a.Size != c.b.Size {
		return false
	}
	for _, name := range []string{"Etag", "Last-Modified", "Content-Type", "Content-Encoding", "Content-Location"} {
		if !slices.Equal(a.header[name], b.header[name]) {
			return false
		}
	}
	return true
}

// wrong describes the error in an answer, "" if there is none.
func (c *drawn) wrong(direct []version, got seen) string {
	var differs []string
	for _, v := range direct {
		d := ""
		if c.way == byTheGateway {
			v.seen, got = v.without(ofGateway), got.without(ofGateway)
		}
		switch {
		case (c.way == byDownload || c.way == byResumedDownload) && got.err == nil:
			d = wrongFile(v.object, v.seen, got)
		case !got.visible():
			d = difference(v.object, v.seen, got)
		case got.status == http.StatusOK && c.method == http.MethodGet && !bytes.HasPrefix(v.body, got.body) && v.object.Mismatch(got.body, 0) >= 0:
			d = "not the beginning of this version"
		}
		if d == "" {
			return ""
		}
		differs = append(differs, d)
	}
	return strings.Join(differs, "\n")
}
