package engine

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/estimate"
	"github.com/tributary-http/tributary/internal/segment"
	"github.com/tributary-http/tributary/internal/transfer"
	"github.com/tributary-http/tributary/pkg/byterange"
)

// plan is how a GET begins.
type plan struct {
	window  segment.Range // of the object, that the client wants as far as it can be known
	first   int64         // bytes asked for at first; 0 = the client's own request as it is
	own     segment.Range // Range of the client's own request; zero = it has none
	asked   bool          // the client sent a Range field
	header  http.Header   // of the first request
	joined  http.Header   // of all others: without conditions (proxy-rules.md R78)
	ifRange string        // the client's own, on the first request only (R80)
	warm    bool          // another link may be of use
}

// conditions are the fields that make a request conditional (RFC 9110 section 13.1), If-Range apart.
var conditions = []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"}

// newPlan reads the client's request. threshold is also the size of the first range: an object that fits is complete with
// one request, and a larger one has time to connect the other links.
func newPlan(req *Request, ranged bool, threshold int64) plan {
	p := plan{window: segment.Range{End: transfer.Unknown}, warm: true}
	p.header = clone(req.Header, "Range", "If-Range")
	p.joined = clone(p.header, conditions...)
	p.ifRange = req.Header.Get("If-Range")
	if field := req.Header.Get("Range"); field != "" {
		p.asked = true
		s, ok := byterange.ParseRange(field)
		if !ok || s.First < 0 {
			// It is asked for as it stands: the fields of the client's own go out unchanged.
			p.header, p.ifRange, p.warm = req.Header, "", false
			return p
		}
		p.window = segment.Range{Start: s.First, End: s.End}
		p.own = p.window
	}
	switch {
	case !ranged:
	case p.window.End != transfer.Unknown && p.window.Len() <= threshold:
		p.warm = false
	default:
		p.first = threshold
	}
	return p
}

// firstReply decides what is made of the first answer, or of the answer to a copy of the first request.
func (r *run) firstReply(e event) time.Time {
	f, reply := e.fetch, e.reply
	if r.version != nil { // a copy: another one was faster
		if e.err == nil && reply.ID == *r.version {
			f.verdict <- read
			return r.handle(transfer.Event{Kind: transfer.Headed, Attempt: f.id, Range: reply.Range, Size: reply.ID.Total, Close: reply.Close})
		}
		f.verdict <- drop
		return r.handle(transfer.Event{Kind: transfer.Ended, Attempt: f.id, Why: transfer.Changed})
	}
	reason, again := r.judge(reply, e.err)
	r.note(reply)
	if (again || reason == "status") && r.copyOf(f) { // the request that it repeats may still be answered (R119)
		f.verdict <- drop
		return r.handle(transfer.Event{Kind: transfer.Ended, Attempt: f.id, Why: transfer.Refused})
	}
	r.interim.close()
	switch {
	case again:
		f.verdict <- drop
		r.over = true
		r.started <- start{again: true}
		return time.Time{}
	case reason != "":
		r.handOver(e, reason)
		return time.Time{}
	}
	id := reply.ID
	r.version, r.first = &id, f.link
	end := min(r.plan.window.End, id.Total)
	r.e.observe(Event{Kind: EventTransferStarted, At: time.Now(), Transfer: r.id, Bytes: end - r.plan.window.Start})
	f.verdict <- read
	r.head, r.headed = r.response(reply, end), time.Now()
	return r.handle(transfer.Event{Kind: transfer.Headed, Attempt: f.id, Range: reply.Range, Size: id.Total, Close: reply.Close})
}

// note takes down what the first answer shows of the origin's way with ranges (R137).
func (r *run) note(reply *Reply) {
	switch {
	case r.plan.asked && r.plan.ifRange != "": // a 200 tells of another version
	case reply.StatusCode == http.StatusPartialContent:
		r.ranges = true
	case reply.StatusCode == http.StatusOK && (r.plan.first > 0 || r.repeat || reply.ProtoMinor == 0 && reply.ProtoMajor == 1 ||
		strings.EqualFold(strings.TrimSpace(reply.Header.Get("Accept-Ranges")), "none")):
		r.ignored = true
	}
}

// remember tells the book what came out of it. Where ranges were ignored, or did not fit together, the next request is for
// the whole object. A link is to blame for a refusal only where another one was served.
func (r *run) remember() {
	whole := r.ignored && !r.ranges && !r.whole || r.disjoint
	if whole || len(r.refused) > 0 {
		r.e.refuse(r.origin, r.target.Path, whole, r.refused)
	}
}

// copyOf reports whether f repeats a first request that is still waited for.
func (r *run) copyOf(f *fetch) bool {
	for id := range r.fetches {
		if id < f.id {
			return true
		}
	}
	return false
}

// judge returns why the answer is handed on as it comes ("" = it becomes a transfer), or that the request must be made
// again as the client made it (R77).
func (r *run) judge(reply *Reply, err error) (reason string, again bool) {
	ours := r.plan.first > 0 && !(r.plan.asked && reply.StatusCode >= 300)
	switch {
	case reply.StatusCode == http.StatusPartialContent && (r.plan.asked || r.plan.first > 0):
		end := min(r.plan.window.End, reply.ID.Total)
		switch {
		case err != nil:
			return "bad_range", ours
		case reply.ID.Total < 0:
			return "unknown_length", ours
		case reply.Range.End >= end:
			return "small", false
		case reply.Splice != nil:
			return reply.Splice.Error(), ours
		}
		return "", false
	case reply.StatusCode == http.StatusOK:
		switch {
		case reply.Splice != nil:
			return reply.Splice.Error(), false
		case r.plan.asked, r.whole:
			return "no_ranges", false
		case reply.ID.Total <= r.e.cfg.Threshold:
			return "small", false
		}
		return "", false
	}
	return "status", ours && dueToRange(reply.StatusCode, r.plan.header)
}

// dueToRange reports whether our own Range field may be why an origin answers with this status: it cannot serve the range,
// refuses such requests or fails at them. All other statuses would have come without it, and asking twice would count a
// wrong password twice and press an origin that is busy.
func dueToRange(status int, h http.Header) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestedRangeNotSatisfiable, http.StatusInternalServerError,
		http.StatusNotImplemented:
		return true
	case http.StatusNotModified, http.StatusPreconditionFailed: // without a condition of the client
		return !slices.ContainsFunc(conditions, func(name string) bool { return len(h[name]) > 0 })
	}
	return false
}

// response makes the head of a transfer's answer: that of the first answer, as the client would have seen it (R110).
func (r *run) response(reply *Reply, end int64) *Response {
	h := reply.Header
	w := segment.Range{Start: r.plan.window.Start, End: end}
	out := &Response{Status: reply.StatusCode, Header: h, ContentLength: w.Len(), ID: reply.ID, Body: &transferBody{r: r}}
	h.Set("Content-Length", strconv.FormatInt(w.Len(), 10))
	switch {
	case reply.StatusCode == http.StatusOK:
	case r.plan.asked:
		h.Set("Content-Range", byterange.Content{Range: w, Total: reply.ID.Total}.String())
		dropDigests(h)
	default:
		whole(out)
	}
	return out
}

// whole turns the 206 that our own range brought into the 200 that the client asked for. A 206 need not repeat what it
// shows, that the origin takes ranges (nginx leaves it out), but clients look for it in the 200 before they resume.
func whole(out *Response) {
	out.Status = http.StatusOK
	if len(out.Header["Accept-Ranges"]) == 0 {
		out.Header.Set("Accept-Ranges", "bytes")
	}
	out.Header.Del("Content-Range")
	dropDigests(out.Header)
}

// dropDigests removes fields that describe the content of one message (RFC 9530 section 2): ours has another content.
func dropDigests(h http.Header) {
	h.Del("Content-Digest")
	h.Del("Content-MD5")
}

// handOver gives the answer to the client as it comes over its one connection, and ends everything else.
func (r *run) handOver(e event, reason string) {
	reply, l := e.reply, e.lane
	out := &Response{Status: reply.StatusCode, Header: reply.Header, ContentLength: reply.ContentLength, ID: reply.ID, Trailer: reply.Trailer}
	// What our own range brought is the whole object, or judge would not have let it pass. A 206 that nobody asked for is
	// what the client would have seen without the proxy (R76).
	if reply.StatusCode == http.StatusPartialContent && r.plan.first > 0 && !r.plan.asked {
		whole(out)
	}
	// The connection leaves the lane: both of its goroutines end without closing it.
	e.fetch.verdict <- stream
	close(l.asks)
	l.alive.Wait()
	delete(r.lanes, l.id)
	b := &streamBody{r: r, from: reply.Body, conn: l.conn, slot: r.slot(l.link)}
	b.stop = context.AfterFunc(r.parent, b.abort)
	out.Body = b
	r.over = true
	r.e.observe(Event{Kind: EventPassedThrough, At: time.Now(), Link: r.slot(l.link).name, Reason: reason})
	r.req.Usage.SetReason(reason)
	r.req.Usage.Add(r.slot(l.link).name, 0, 0)
	r.e.learn(r.origin, estimate.Visit{}, nil)
	r.remember()
	r.started <- start{resp: out}
}

// transferBody is the content of a transfer.
type transferBody struct {
	r    *run
	rest []piece // Read: what is left of the batch
}

// WriteTo implements io.WriterTo.
func (b *transferBody) WriteTo(w io.Writer) (n int64, err error) {
	for batch := range b.r.out {
		for i, p := range batch {
			if err == nil {
				var k int
				k, err = w.Write(p.bytes())
				n += int64(k)
			}
			p.b.free()
			if err == nil {
				b.delivered(p, i == len(batch)-1)
			}
		}
		if err != nil {
			b.r.cancel()
			return n, err
		}
	}
	return n, b.r.failed
}

func (b *transferBody) delivered(p piece, last bool) {
	b.r.tell(event{Event: transfer.Event{Kind: transfer.Delivered, N: int64(p.hi - p.lo), Close: last}})
}

// Read implements io.Reader.
func (b *transferBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		batch, ok := <-b.r.out
		if !ok {
			if b.r.failed != nil {
				return 0, b.r.failed
			}
			return 0, io.EOF
		}
		b.rest = batch
	}
	q := &b.rest[0]
	n := copy(p, q.bytes())
	part := piece{off: q.off, lo: q.lo, hi: q.lo + n}
	q.lo, q.off = q.lo+n, q.off+int64(n)
	last := false
	if q.lo == q.hi {
		q.b.free()
		b.rest = b.rest[1:]
		last = len(b.rest) == 0
	}
	b.delivered(part, last)
	return n, nil
}

// WriteAtTo implements Body.
func (b *transferBody) WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (int64, error) {
	var done segment.Set
	var written, prefix int64
	var failed error
	b.r.tellWrote(wrote{begin: true})
	start := b.r.plan.window.Start
	for batch := range b.r.out {
		var ranges []segment.Range
		for _, p := range batch {
			if failed == nil {
				if _, failed = w.WriteAt(p.bytes(), p.off-start); failed == nil {
					r := segment.Range{Start: p.off, End: p.end()}
					ranges = append(ranges, r)
					written += done.Add(r)
				}
			}
			p.b.free()
		}
		if all := done.Ranges(); len(all) > 0 && all[0].Start == start {
			prefix = all[0].Len()
		}
		if failed != nil {
			b.r.cancel()
			continue
		}
		if progress != nil {
			progress(written, prefix)
		}
		b.r.tellWrote(wrote{ranges: ranges})
	}
	if failed == nil {
		failed = b.r.failed
	}
	return prefix, failed
}

// Close implements io.Closer: it ends the transfer and waits until nothing of it is left.
func (b *transferBody) Close() error {
	b.r.cancel()
	for batch := range b.r.out {
		b.rest = append(b.rest, batch...)
	}
	freeAll(b.rest)
	b.rest = nil
	<-b.r.done
	return nil
}

// streamBody is the content of one answer as it comes.
type streamBody struct {
	r    *run
	from io.ReadCloser
	conn Conn
	slot *slot
	stop func() bool
	end  bool
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if n > 0 {
		s := b.slot
		s.lastByte.Store(b.r.e.fleet.clock(time.Now()))
		s.bytes.Add(int64(n))
		s.meter.add(s.lastByte.Load(), int64(n))
		b.r.req.Usage.Add(s.name, int64(n), 0)
		b.r.e.observe(Event{Kind: EventReceived, At: time.Now(), Link: s.name, Bytes: int64(n)})
	}
	if err == io.EOF && !b.end {
		b.end = true
		if b.stop() {
			b.conn.Release()
		}
	}
	return n, err
}

// WriteTo implements io.WriterTo.
func (b *streamBody) WriteTo(w io.Writer) (int64, error) {
	k := b.r.e.blocks.get()
	defer k.free()
	return io.CopyBuffer(w, struct{ io.Reader }{b}, k.data)
}

// WriteAtTo implements Body.
func (b *streamBody) WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (int64, error) {
	return writeInOrder(b, w, progress)
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	if !b.end {
		b.end = true
		b.stop()
		b.conn.Close()
	}
	return nil
}

func (b *streamBody) abort() { b.conn.Close() }
