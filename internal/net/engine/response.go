package engine

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// firstResponse carries out the opening's decision about the first answer, or about the answer to a copy of the first
// request.
func (r *run) firstResponse(e event) time.Time {
	f, response := e.attempt, e.response
	if f.ahead && r.opening.Version() == nil {
		r.early = append(r.early, e)
		return r.handle(transfer.Event{Kind: transfer.Tick})
	}
	v := r.opening.Answer(head(response, e.err), r.link(f.link).name, r.copyOf(f))
	if v.Do == opening.Join && !v.ClientsHead && response.Range.Start != f.request.Range.Start { // the whole object
		v.Do, v.Outcome = opening.Drop, fault.NoRange
	}
	if v.ClientsHead || v.Do == opening.Stream || v.Do == opening.Repeat {
		r.interim.close()
	}
	if v.Do == opening.Stream {
		r.handOver(e, v.Reason)
		return time.Time{}
	}
	f.verdict <- v.Do
	switch v.Do {
	case opening.Drop:
		return r.handle(transfer.Event{Kind: transfer.Ended, Attempt: f.id, Outcome: v.Outcome})
	case opening.Repeat:
		r.over = true
		r.started <- start{}
		return time.Time{}
	}
	if v.ClientsHead {
		r.further = r.helped()
		r.e.runs(1, r.further)
		content := r.opening.Content()
		r.e.observe(Event{Kind: EventTransferStarted, At: time.Now(), Transfer: r.id, Bytes: content.Len()})
		r.pending, r.pendingSince = r.response(response), time.Now()
		r.pending.ContentLength, r.pending.Body = content.Len(), &transferBody{r: r, start: content.Start}
	}
	next := r.handle(transfer.Event{
		Kind:    transfer.HeadReceived,
		Attempt: f.id,
		Range:   response.Range,
		Size:    response.ID.Total,
		Close:   response.Close,
	})
	for early := r.early; v.ClientsHead && len(early) > 0 && !r.over; early = early[1:] {
		r.early = nil
		if f := early[0].attempt; r.attempts[f.id] == f { // its connection is still wanted
			next = r.firstResponse(early[0])
		}
	}
	return next
}

// head returns the part of an answer that the opening gets.
func head(response *RangeResponse, err error) opening.Head {
	return opening.Head{
		Status:   response.StatusCode,
		Fields:   response.Header,
		Range:    response.Range,
		ID:       response.ID,
		Unfit:    response.Unfit,
		Mismatch: err != nil,
	}
}

// response returns the client's answer for a first one, without its content.
func (r *run) response(response *RangeResponse) *Response {
	return &Response{
		Status: r.opening.Rewrite(head(response, nil)), Header: response.Header, ContentLength: response.ContentLength,
		ID: response.ID,
	}
}

// copyOf reports whether f repeats a first request that is still running.
func (r *run) copyOf(f *attempt) bool {
	for id, o := range r.attempts {
		if id < f.id && !o.ahead {
			return true
		}
	}
	return false
}

// handOver gives the answer to the client as it arrives over its one connection, and ends everything else.
func (r *run) handOver(e event, reason opening.Reason) {
	response, l := e.response, e.conn
	out := r.response(response)
	out.Trailer = response.Trailer
	// The connection leaves the connection loop: both of its goroutines end without closing it.
	e.attempt.verdict <- opening.Stream
	close(l.requests)
	l.alive.Wait()
	delete(r.conns, l.id)
	b := &streamBody{
		r:     r,
		from:  response.Body,
		conn:  l.conn,
		link:  r.link(l.link),
		radio: r.radio(l.link),
	}
	b.stop = context.AfterFunc(r.parent, b.abort)
	r.e.fleet.streams(b)
	out.Body = b
	r.over = true
	r.e.observe(Event{Kind: EventPassedThrough, At: time.Now(), Link: r.link(l.link).name, Reason: string(reason)})
	r.req.Usage.SetReason(string(reason))
	r.req.Usage.Add(r.link(l.link).name, 0, 0)
	r.e.remember(r, r.opening.Remember(), nil)
	r.started <- start{resp: out}
}

// transferBody is the content of a transfer.
type transferBody struct {
	r     *run
	start int64 // offset of its first byte

	mu   sync.Mutex
	rest []piece // Read: the rest of the batch
}

// left returns what Read has left of a batch. Close may be called while WriteTo waits.
func (b *transferBody) left() (rest []piece) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest, b.rest = b.rest, nil
	return rest
}

// WriteTo implements io.WriterTo.
func (b *transferBody) WriteTo(w io.Writer) (n int64, err error) {
	next, ok := work{pieces: b.left()}, true
	if next.pieces == nil {
		next, ok = <-b.r.out
	}
	for ; ok; next, ok = <-b.r.out {
		for i, p := range next.pieces {
			if err == nil {
				var k int
				k, err = w.Write(p.bytes())
				n += int64(k)
			}
			p.b.free()
			if err == nil {
				b.delivered(p, i == len(next.pieces)-1)
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
		next, ok := <-b.r.out
		if !ok {
			if b.r.failed != nil {
				return 0, b.r.failed
			}
			return 0, io.EOF
		}
		b.rest = next.pieces
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
	for next := range b.r.out {
		for _, r := range next.back {
			written -= done.Remove(r)
		}
		var ranges []segment.Range
		for _, p := range next.pieces {
			if failed == nil {
				if _, failed = w.WriteAt(p.bytes(), p.off-b.start); failed == nil {
					r := segment.Range{Start: p.off, End: p.end()}
					ranges = append(ranges, r)
					written += done.Add(r)
				}
			}
			p.b.free()
		}
		if all := done.Ranges(); len(all) > 0 && all[0].Start == b.start {
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
	return min(prefix, b.r.sound-b.start), failed
}

// Close implements io.Closer: it ends the transfer and waits until nothing of it is left.
func (b *transferBody) Close() error {
	b.r.cancel()
	freeAll(b.left())
	for next := range b.r.out {
		freeAll(next.pieces)
	}
	<-b.r.done
	return nil
}

// streamBody is the content of one answer as it arrives over its connection.
type streamBody struct {
	r     *run
	from  io.ReadCloser
	conn  Conn
	link  *fleetLink
	radio *energy.Radio
	stop  func() bool
	end   bool
	costs atomic.Bool // it was aborted, since its link costs money now
}

// streams records that an answer arrives over one connection.
func (f *fleet) streams(b *streamBody) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream[b] = true
	f.abortStreams() // its link may have come to cost money since the request
}

// abortStreams aborts the answers whose link now costs money that the request may not spend. The lock is held.
func (f *fleet) abortStreams() {
	for b := range f.stream {
		if !b.r.pays(b.link.link) {
			b.costs.Store(true)
			b.abort()
		}
	}
}

// over ends the answer, and reports whether it had not ended yet.
func (b *streamBody) over() bool {
	if b.end {
		return false
	}
	b.end = true
	f := b.r.e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.stream, b)
	return true
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if n > 0 {
		s := b.link
		s.lastByte.Store(b.r.e.fleet.clock(time.Now()))
		s.lastRun.Store(nil)
		s.bytes.Add(int64(n))
		s.meter.add(s.lastByte.Load(), int64(n))
		now := time.Now()
		s.radio.add(now, int64(n))
		b.r.req.Usage.Add(s.name, int64(n), 0)
		b.r.req.Usage.Spend(s.name, b.radio, now, int64(n))
		b.r.e.observe(Event{Kind: EventReceived, At: time.Now(), Link: s.name, Bytes: int64(n)})
	}
	switch {
	case err == io.EOF:
		if b.over() && b.stop() {
			b.conn.Release()
		}
	case err != nil && b.costs.Load():
		err = &AttemptError{Op: "body", Link: b.link.name, Outcome: fault.LinkLost, Err: ErrCosts}
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
	if b.over() {
		b.stop()
		b.conn.Close()
	}
	return nil
}

func (b *streamBody) abort() { b.conn.Close() }
