package origin_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

var links = []link.Link{{Name: "w0", Index: 1}, {Name: "w1", Index: 2}}

// pool is a Pool whose links connect with dial.
type pool struct {
	*origin.Pool
	dial link.DialFunc
}

func newPool(dial link.DialFunc, roots *x509.CertPool) *pool { return &pool{origin.New(roots), dial} }

func (p *pool) Open(ctx context.Context, l link.Link, t engine.Target) (engine.Conn, error) {
	l.Path = p.dial.Path(l)
	return p.Pool.Open(ctx, l, t)
}

// rig is an origin and a pool whose links lead to one node each.
type rig struct {
	t    *testing.T
	s    *ot.Server
	pool *pool
}

func newRig(t *testing.T, o ot.Object, faults ...ot.Fault) *rig {
	t.Helper()
	s := ot.New(t, o, faults...)
	p := newPool(dialNodes(s), nil)
	t.Cleanup(p.Close)
	return &rig{t, s, p}
}

// dialNodes connects links[i] to node i, whatever the address.
func dialNodes(s *ot.Server) link.DialFunc {
	return func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Index-1))
	}
}

func (r *rig) target() engine.Target {
	return engine.Target{Scheme: "http", Host: r.s.Addr(0), Addr: r.s.Addr(0), Path: "/object"}
}

func (r *rig) open(node int) engine.Conn {
	r.t.Helper()
	c, err := r.pool.Open(r.t.Context(), links[node], r.target())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// ask asks for a range of the object as it is without faults; want says whether the version is known already.
func (r *rig) ask(start, end int64, want bool) engine.RangeRequest {
	a := engine.RangeRequest{Target: r.target(), Range: segment.Range{Start: start, End: end}}
	if want {
		o := r.s.Object()
		modified := o.Modified.UTC().Format(http.TimeFormat)
		a.Want = &engine.Identity{Total: o.Size, Validator: o.ETag, ETag: o.ETag, Modified: modified, Type: o.Type}
		if o.ETag == ot.NoETag {
			a.Want.Validator, a.Want.ETag = modified, ""
		}
		a.IfRange = a.Want.Validator
	}
	return a
}

func (r *rig) send(c engine.Conn, asks ...engine.RangeRequest) {
	r.t.Helper()
	for _, a := range asks {
		if err := c.Send(a); err != nil {
			r.t.Fatal(err)
		}
	}
}

// next reads one good answer and checks its bytes.
func (r *rig) next(c engine.Conn) *engine.RangeResponse {
	r.t.Helper()
	response, err := c.Next()
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if int64(len(b)) != response.Range.Len() {
		r.t.Fatalf("%d bytes for %v", len(b), response.Range)
	}
	if off := r.s.Object().Mismatch(b, response.Range.Start); off >= 0 {
		r.t.Fatalf("wrong byte at %d", off)
	}
	return response
}

func outcome(t *testing.T, err error) fault.Outcome {
	t.Helper()
	var a *engine.AttemptError
	if !errors.As(err, &a) {
		t.Fatalf("%v is no AttemptError", err)
	}
	return a.Outcome
}

func TestPipelining(t *testing.T) {
	r := newRig(t, ot.Object{Size: 1 << 20})
	c := r.open(0)
	const n, size = 10, 100_000
	for i := range int64(n) {
		r.send(c, r.ask(i*size, (i+1)*size, i > 0))
	}
	for i := range int64(n) {
		response := r.next(c)
		if want := (segment.Range{Start: i * size, End: (i + 1) * size}); response.Range != want {
			t.Errorf("answer %d: %v, want %v", i, response.Range, want)
		}
		if response.Unfit != opening.None || response.ID.Total != 1<<20 || response.ID.Validator != `"v1"` {
			t.Errorf("answer %d: unfit %q, %+v", i, response.Unfit, response.ID)
		}
	}
	for i, q := range r.s.Requests() {
		if q.Conn != 1 || q.Seq != i+1 {
			t.Errorf("request %d: connection %d, number %d", i, q.Conn, q.Seq)
		}
		// R94: every request after the first carries If-Range.
		if got := q.Header.Get("If-Range"); (got == `"v1"`) != (i > 0) {
			t.Errorf("request %d: If-Range %q", i, got)
		}
	}
}

func TestSendAndNextInTwoGoroutines(t *testing.T) {
	r := newRig(t, ot.Object{Size: 1 << 20})
	c := r.open(0)
	const n, size = 64, 16 << 10
	sent := make(chan error, n)
	go func() {
		defer close(sent)
		for i := range int64(n) {
			sent <- c.Send(r.ask(i*size, (i+1)*size, true))
		}
	}()
	got := 0
	for err := range sent {
		if err != nil {
			t.Fatal(err)
		}
		if response := r.next(c); response.Range.Start != int64(got)*size {
			t.Fatalf("answer %d: %v", got, response.Range)
		}
		got++
	}
	if got != n {
		t.Errorf("%d answers", got)
	}
}

// Every fault ends in the right Outcome, and no byte of another object is read.
func TestFaults(t *testing.T) {
	const size = 100_000
	tests := []struct {
		name    string
		fault   ot.Fault
		first   bool // ask as the first request of a transfer
		node    int
		outcome fault.Outcome // of Next or of the body
		bytes   int64         // of the body, before the error
	}{
		{"R102 no ranges", ot.NoRanges(), false, 0, fault.NoRange, 0},
		{"R102 no ranges, announced", ot.IgnoresRange(), false, 0, fault.NoRange, 0},
		{"R97 wrong start", ot.WrongStart(1), false, 0, fault.BadRange, 0},
		{"R97 beyond the end", ot.EndsBeyond(1), false, 0, fault.BadRange, 0},
		{"R96 wrong total", ot.WrongTotal(size + 1), false, 0, fault.Changed, 0},
		{"R96 no Content-Range", ot.NoContentRange(), false, 0, fault.BadRange, 0},
		{"R99 contradiction", ot.ContentRange("bytes 5-4/10"), false, 0, fault.BadRange, 0},
		{"R104 multipart", ot.Multipart(), false, 0, fault.BadRange, 0},
		{"R107 new version", ot.NewVersion(), false, 0, fault.Changed, 0},
		{"R204 new version, If-Range ignored", join(ot.NewVersion(), ot.IgnoresIfRange()), false, 0, fault.Changed, 0},
		{"R116 other ETag on one node", ot.OnNode(1, ot.OtherETag(`"x"`), ot.IgnoresIfRange()), false, 1, fault.Changed, 0},
		{"R88 weak ETag later", join(ot.WeakETag(), ot.IgnoresIfRange()), false, 0, fault.Changed, 0},
		{"R100 ETag missing later", ot.Del("ETag"), false, 0, fault.Changed, 0},
		{"R103 truncated", ot.Truncated(50), false, 0, fault.Changed, 0},
		{"R105 403", ot.Status(403), false, 0, fault.Unwanted, 0},
		{"R105 404", ot.Status(404), false, 0, fault.Unwanted, 0},
		{"R117 302", ot.Redirect("http://login/"), false, 0, fault.Unwanted, 0},
		{"R105 login page", ot.LoginPage(), false, 0, fault.Unwanted, 0},
		{"R105 429", ot.Busy(429, 3), false, 0, fault.Busy, 0},
		{"R105 503", ot.Busy(503, 3), false, 0, fault.Busy, 0},
		{"R101 short", ot.ShortBody(10), false, 0, fault.Short, 990},
		{"R101 short, chunked", join(ot.ShortBody(10), ot.InChunks()), false, 0, fault.Short, 990},
		{"R101 short, until close", join(ot.ShortBody(10), ot.CloseDelimited()), false, 0, fault.Short, 990},
		{"R101 long, chunked", join(ot.SurplusBody(1), ot.InChunks()), false, 0, fault.BadRange, 1000},
		{"R101 long, until close", join(ot.SurplusBody(1), ot.CloseDelimited()), false, 0, fault.BadRange, 1000},
		{"reset in the body", ot.ResetAfter(500), false, 0, fault.Reset, -1},
		{"garbage", ot.Garbage(), false, 0, fault.Unwanted, 0},
		{"R77 first: 416", ot.Truncated(50), true, 0, fault.Unwanted, 0},
		{"R77 first: 403", ot.Status(403), true, 0, fault.Unwanted, 0},
		{"R77 first: wrong start", ot.WrongStart(1), true, 0, fault.BadRange, 0},
		{"R101 first: short", ot.ShortBody(10), true, 0, fault.Short, 990},
		{"R36 endless head", ot.Raw("HTTP/1.1 206 x\r\n" + strings.Repeat("A: b\r\n", 60_000)), false, 0, fault.Unwanted, 0},
		{"R36 endless line", ot.Raw("HTTP/1.1 206 " + strings.Repeat("x", 300<<10)), false, 0, fault.Unwanted, 0},
		{"R36 endless 103s", ot.Interim(many("HTTP/1.1 103 Early Hints\r\n\r\n", 33)...), false, 0, fault.Unwanted, 0},
		{"R72 unsolicited 101", ot.Raw("HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n"), false, 0, fault.Unwanted, 0},
		{"R13 status 099", ot.Raw("HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"), false, 0, fault.Unwanted, 0},
		{"head cut", join(ot.Raw("HTTP/1.1 206 OK\r\nContent-"), ot.ClosesEarly()), false, 0, fault.Reset, 0},
		{"R53 interim, then the end", join(ot.Raw("HTTP/1.1 103 x\r\n\r\n"), ot.ClosesEarly()), false, 0, fault.Reset, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, ot.Object{Size: size}, tt.fault)
			c := r.open(tt.node)
			r.send(c, r.ask(1000, 2000, !tt.first))
			response, err := c.Next()
			var b []byte
			if err == nil {
				b, err = io.ReadAll(response.Body)
			}
			if err == nil {
				t.Fatal("no error")
			}
			if got := outcome(t, err); got != tt.outcome {
				t.Fatalf("%v: %s, want %s", err, got, tt.outcome)
			}
			if tt.bytes >= 0 && int64(len(b)) != tt.bytes {
				t.Errorf("%d bytes, want %d", len(b), tt.bytes)
			}
			if off := r.s.Object().Mismatch(b, 1000); off >= 0 {
				t.Errorf("wrong byte at %d", off)
			}
			var a *engine.AttemptError
			if errors.As(err, &a); tt.outcome == fault.Busy && a.RetryAfter.Seconds() != 3 {
				t.Errorf("RetryAfter %v", a.RetryAfter)
			}
		})
	}
}

// Legal answers that differ from the requested ones.
func TestLegalAnswers(t *testing.T) {
	tests := []struct {
		name   string
		fault  ot.Fault
		object ot.Object
		ask    func(*rig) engine.RangeRequest
		rng    segment.Range
		unfit  opening.Reason
	}{
		{"R97 capped", ot.CapsRanges(100), ot.Object{}, later, segment.Range{Start: 1000, End: 1100}, opening.None},
		{"R101 chunked", ot.InChunks(), ot.Object{}, later, segment.Range{Start: 1000, End: 2000}, opening.None},
		{"R101 until close", ot.CloseDelimited(), ot.Object{}, later, segment.Range{Start: 1000, End: 2000}, opening.None},
		{"R48 surplus after the message", ot.SurplusBody(7), ot.Object{}, later, segment.Range{Start: 1000, End: 2000}, opening.None},
		{
			"R53 interim answers", ot.Interim(many("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 32)...),
			ot.Object{},
			later,
			segment.Range{Start: 1000, End: 2000},
			opening.None,
		},
		{"R100 by date", nothing, ot.Object{ETag: ot.NoETag}, later, segment.Range{Start: 1000, End: 2000}, opening.None},
		{"R77 first: ranged", nothing, ot.Object{}, ranged, segment.Range{Start: 1000, End: 2000}, opening.None},
		{"first: open range", nothing, ot.Object{}, open, segment.Range{Start: 1000, End: 5000}, opening.None},
		{"first: whole", nothing, ot.Object{}, whole, segment.Range{End: 5000}, opening.None},
		{"R77 first: 200 to a range", ot.IgnoresRange(), ot.Object{}, ranged, segment.Range{End: 5000}, opening.None},
		{"R77 first: no ranges", ot.NoRanges(), ot.Object{}, ranged, segment.Range{End: 5000}, opening.NoRanges},
		{"R137 first: Accept-Ranges: none", ot.RangesNone(), ot.Object{}, whole, segment.Range{End: 5000}, opening.NoRanges},
		{"R88 first: weak ETag", ot.WeakETag(), ot.Object{}, whole, segment.Range{End: 5000}, opening.WeakValidator},
		{"R87 first: no validator", ot.NoValidator(), ot.Object{}, whole, segment.Range{End: 5000}, opening.NoValidator},
		{"R90 first: date too close", ot.LastModifiedOnly(1e9), ot.Object{}, whole, segment.Range{End: 5000}, opening.WeakValidator},
		{"R90 first: date far enough", ot.LastModifiedOnly(60e9), ot.Object{}, whole, segment.Range{End: 5000}, opening.None},
		{"R87 first: HTTP/1.0", ot.HTTP10(), ot.Object{}, whole, segment.Range{End: 5000}, opening.HTTP10},
		{
			"R41 first: chunked and a length", join(ot.InChunks(), ot.Set("Content-Length", "9")),
			ot.Object{},
			whole,
			segment.Range{End: -1},
			opening.Framing,
		},
		{"R235 first: HTTP/1.0 and chunks", join(ot.HTTP10(), ot.InChunks()), ot.Object{}, whole, segment.Range{End: -1}, opening.HTTP10},
		{
			"R115 first: trailer", join(ot.InChunks(), ot.Set("Trailer", "X-Sum")),
			ot.Object{},
			whole,
			segment.Range{End: -1},
			opening.Trailer,
		},
		{"R87 first: chunked", ot.InChunks(), ot.Object{}, whole, segment.Range{End: -1}, opening.UnknownLength},
		{"R87 first: until close", ot.CloseDelimited(), ot.Object{}, whole, segment.Range{End: -1}, opening.UnknownLength},
		{"R40 equal lengths folded", ot.Add("Content-Length", "5000"), ot.Object{}, whole, segment.Range{End: 5000}, opening.None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.object.Size = 5000
			r := newRig(t, tt.object, tt.fault)
			c := r.open(0)
			interim := 0
			a := tt.ask(r)
			a.Interim = func(status int, h http.Header) {
				if interim++; status != 103 || h.Get("Link") != "x" {
					t.Errorf("interim %d, %v", status, h)
				}
			}
			r.send(c, a)
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			if response.Range != tt.rng || response.Unfit != tt.unfit {
				t.Errorf("got %v, unfit %q", response.Range, response.Unfit)
			}
			b, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if off := r.s.Object().Mismatch(b, tt.rng.Start); off >= 0 || tt.rng.End >= 0 && int64(len(b)) != tt.rng.Len() {
				t.Errorf("%d bytes, wrong at %d", len(b), off)
			}
			if strings.HasPrefix(tt.name, "R53") && interim != 32 {
				t.Errorf("%d interim answers", interim)
			}
		})
	}
}

// The framing of an answer must be unambiguous.
func TestR039_R040_R044_BadHeads(t *testing.T) {
	var heads []string
	for _, te := range []string{
		"gzip, chunked", "chunked, chunked", "xchunked", "chunked,identity", ",chunked", "\x0bchunked",
		"chunked;x=y", "identity", "", "chunked\r\nTransfer-Encoding: chunked", "chu nked",
	} {
		heads = append(heads, "R39 Transfer-Encoding: "+te)
	}
	for _, cl := range []string{"+5", "-1", "0x5", "5_0", "", "5, 5", "9223372036854775808", "5\r\nContent-Length: 6", "5 5", "1e3"} {
		heads = append(heads, "R40 Content-Length: "+cl)
	}
	for _, line := range []string{" A: b", "A : b", "A: b\rc", "A: b\x00c"} {
		heads = append(heads, "R44 "+line)
	}
	heads = append(heads, "R235 Content-Length: 5\r\nTransfer-Encoding: chunked")
	for _, h := range heads {
		t.Run(fmt.Sprintf("%.60q", h), func(t *testing.T) {
			rule, line, _ := strings.Cut(h, " ")
			version := "HTTP/1.1"
			if rule == "R235" {
				version = "HTTP/1.0"
			}
			r := newRig(t, ot.Object{Size: 5000}, ot.Raw(version+" 200 OK\r\n"+line+"\r\n\r\nhello"), ot.ClosesEarly())
			c := r.open(0)
			r.send(c, whole(r))
			if response, err := c.Next(); err == nil {
				t.Fatalf("accepted: %+v", response.Response)
			} else if got := outcome(t, err); got != fault.Unwanted || !errors.Is(err, origin.ErrMalformed) {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

func TestR043_BadChunks(t *testing.T) {
	for _, body := range []string{
		"2;\nxx\r\n0\r\n\r\n", "2\r;a\r\nxx\r\n0\r\n\r\n", "0_2\r\nxx\r\n0\r\n\r\n", "+2\r\nxx\r\n0\r\n\r\n",
		"00000000000000002\r\nxx\r\n0\r\n\r\n", "2\r\nxxx\r\n0\r\n\r\n", "2\nxx\r\n0\r\n\r\n", "fffffffffffffffff\r\nxx",
		"2;" + strings.Repeat("e", 5000) + "\r\nxx\r\n0\r\n\r\n",
	} {
		t.Run(fmt.Sprintf("R43 %.20q", body), func(t *testing.T) {
			r := newRig(t, ot.Object{Size: 5000}, ot.Raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+body), ot.ClosesEarly())
			c := r.open(0)
			r.send(c, whole(r))
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(response.Body)
			if err == nil {
				t.Fatalf("accepted: %q", b)
			}
			if got := outcome(t, err); got != fault.BadRange {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

// RFC 9112 section 6.3: "Any response to a HEAD request and any response with a 1xx (Informational), 204 (No Content), or
// 304 (Not Modified) status code is always terminated by the first empty line after the header fields".
func TestR046_NoBody(t *testing.T) {
	for _, status := range []string{"204", "304"} {
		t.Run("R46 "+status, func(t *testing.T) {
			r := newRig(t, ot.Object{Size: 5000}, ot.OnSeq(1, ot.Raw("HTTP/1.1 "+status+" x\r\nContent-Length: 5\r\n\r\nhello")))
			c := r.open(0)
			r.send(c, whole(r), whole(r))
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(response.Body); len(b) != 0 || err != nil {
				t.Errorf("body %q, %v", b, err)
			}
			// The five bytes are not the head of the next answer.
			if _, err := c.Next(); err == nil || outcome(t, err) != fault.Unanswered {
				t.Errorf("next: %v", err)
			}
		})
	}
}

func TestR030_PragmaStaysAlone(t *testing.T) {
	for _, tt := range []struct{ cc, want string }{{"", ""}, {"max-age=5", "max-age=5"}, {"no-cache", "no-cache"}} {
		faults := []ot.Fault{ot.Set("Pragma", "no-cache")}
		if tt.cc != "" {
			faults = append(faults, ot.Set("Cache-Control", tt.cc))
		}
		r := newRig(t, ot.Object{Size: 50}, faults...)
		c := r.open(0)
		r.send(c, whole(r))
		if got := r.next(c).Header.Get("Cache-Control"); got != tt.want {
			t.Errorf("R30 Cache-Control %q, want %q", got, tt.want)
		}
	}
}

func TestR093_Gzip(t *testing.T) {
	r := newRig(t, ot.Object{Size: 5000}, ot.Gzip())
	c := r.open(0)
	first := whole(r)
	first.Header = http.Header{"Accept-Encoding": {"gzip"}}
	r.send(c, first)
	response, err := c.Next()
	if err != nil || response.Unfit != opening.Coding || response.ID.Coding != "gzip" {
		t.Fatalf("%+v, %v", response, err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	// R84: a request that joins an uncoded answer asks for no coding and so gets the right bytes.
	join := later(r)
	join.Header = http.Header{"Accept-Encoding": {"gzip"}}
	r.send(c, join)
	r.next(c)
}

func join(faults ...ot.Fault) ot.Fault {
	return ot.If(func(*ot.Request) bool { return true }, faults...)
}

func nothing(*ot.Exchange) {}

func many(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func later(r *rig) engine.RangeRequest  { return r.ask(1000, 2000, true) }
func ranged(r *rig) engine.RangeRequest { return r.ask(1000, 2000, false) }
func open(r *rig) engine.RangeRequest   { return r.ask(1000, byterange.Open, false) }
func whole(r *rig) engine.RangeRequest  { return r.ask(0, 0, false) }
