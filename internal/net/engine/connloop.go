package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// maxOutstanding bounds the requests on one connection: more than the machine ever pipelines.
const maxOutstanding = 16

// event is a message from a connection loop or the writer to the loop.
type event struct {
	transfer.Event
	conn     *connLoop
	attempt  *attempt
	piece    piece          // Read: the bytes, with a reference
	response *RangeResponse // first answer: the loop replies through attempt.verdict
	err      error
}

// attempt is one attempt.
type attempt struct {
	id      uint32
	conn    uint32
	request RangeRequest
	credit  atomic.Int64
	end     atomic.Int64    // nothing is wanted from here on
	more    chan struct{}   // credit has grown, or the end has come closer
	verdict chan opening.Do // of the loop, if the answer arrived before the version was known
	ahead   bool            // requested by FetchAhead
	sent    time.Time
	link    int8
}

func (f *attempt) extend(upTo int64) {
	f.credit.Store(upTo)
	f.wake()
}

func (f *attempt) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// connLoop is one connection with the goroutines that dial, send and read. The loop closes requests to end it.
type connLoop struct {
	r        *run
	id       uint32
	link     int8
	requests chan *attempt // from the loop
	// from the sender to the reader; only the reader reports how attempts end, to keep their order
	sent    chan sending
	ctx     context.Context
	end     context.CancelFunc
	keep    atomic.Bool // release the connection when all is read
	got     int64       // bytes of bodies that the reader has read
	block   *block      // which the reader fills, one answer after the other; nil = none
	fill    int         // bytes in it
	alive   sync.WaitGroup
	running atomic.Int32 // goroutines in alive

	born, sampled time.Time // when it was made, and when its path was last sampled; for the run's loop

	mu   sync.Mutex
	conn Conn
}

// sending is an attempt whose request was sent, or could not be.
type sending struct {
	*attempt
	err error
}

// newConnLoop starts a connection over a link, one of its own if apart.
func newConnLoop(r *run, id uint32, over int8, apart bool) *connLoop {
	l := &connLoop{
		r:        r,
		id:       id,
		link:     over,
		born:     time.Now(),
		requests: make(chan *attempt, maxOutstanding),
		sent:     make(chan sending, maxOutstanding),
	}
	l.ctx, l.end = context.WithCancel(r.work)
	if apart {
		l.ctx = link.Apart(l.ctx)
	}
	l.start(l.dial)
	return l
}

// start runs one of its goroutines.
func (l *connLoop) start(f func()) {
	l.running.Add(1)
	l.alive.Go(func() {
		defer l.running.Add(-1)
		f()
	})
}

// ended reports whether all of its goroutines have ended.
func (l *connLoop) ended() bool { return l.running.Load() == 0 }

// close ends the connection loop at once; blocked calls return.
func (l *connLoop) close() {
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
	}
}

// connected reports whether the connection was made.
func (l *connLoop) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil
}

// sample returns the state of the connection's path.
func (l *connLoop) sample() (transfer.PathSample, bool) {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c == nil {
		return transfer.PathSample{}, false
	}
	return c.Sample()
}

// received returns the counters of what the connection received, false if they are unknown.
func (l *connLoop) received() (link.Counters, bool) {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	return c.Received()
}

// cut ends an attempt at an offset.
func (l *connLoop) cut(f *attempt, upTo int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.Cut(f.id, upTo) {
		f.end.Store(upTo)
		f.wake()
	}
}

// release ends the connection loop when all requested bytes are read, and gives the connection back.
func (l *connLoop) release() {
	l.keep.Store(true)
	close(l.requests)
	// Only the end of a body that was read in full is left. If that takes long, the connection is not worth keeping.
	time.AfterFunc(time.Second, l.close)
}

// dial connects and starts the connection's other goroutines. Its own ends then: names, routes and certificates take a
// deep stack, which a goroutine that lives as long as the connection would keep.
func (l *connLoop) dial() {
	c, err := l.r.e.cfg.Opener.Open(l.ctx, l.r.e.fleet.at(l.link), l.r.req.Target)
	if err != nil {
		outcome := fault.Unreachable
		if a := new(AttemptError); errors.As(err, &a) {
			outcome = a.Outcome
		}
		l.r.tell(event{conn: l, err: err, Event: transfer.Event{
			Kind: transfer.OpenFailed, Conn: l.id, Outcome: outcome, OriginRefused: refusedByOrigin(err),
		}})
		if full, ok := errors.AsType[*link.NoSlotError](err); ok {
			select {
			case <-full.Freed:
				l.r.tell(event{Event: transfer.Event{Kind: transfer.SlotFreed, Link: l.link}})
			case <-l.ctx.Done():
			}
		}
		return
	}
	l.mu.Lock()
	l.conn = c
	l.mu.Unlock()
	if l.ctx.Err() != nil {
		c.Close()
		return
	}
	info := c.Info()
	l.r.e.fleet.found(l.r.site, l.link, info.Remote)
	l.r.tell(event{conn: l, Event: transfer.Event{
		Kind:        transfer.Opened,
		Conn:        l.id,
		RTT:         info.RTT,
		Reused:      info.Reused,
		Multiplexed: info.Multiplexed,
	}})
	l.start(func() { l.read(c) })
	l.start(func() { l.send(c) })
}

// send sends the requests of the loop.
func (l *connLoop) send(c Conn) {
	defer close(l.sent)
	if l.r.req.Links.Background {
		l.r.e.cross.join(l)
		defer l.r.e.cross.leave(l)
	}
	for {
		select {
		case f, ok := <-l.requests:
			if !ok {
				return
			}
			err := c.Send(f.request)
			l.sent <- sending{f, err} // never full: the machine pipelines less
			if err != nil {
				return
			}
		case <-l.ctx.Done():
			c.Close()
			return
		}
	}
}

// read reads the answers in order.
func (l *connLoop) read(c Conn) {
	defer l.letGo()
	for {
		f, ok := l.next()
		if !ok {
			break
		}
		if f.err != nil {
			c.Close()
			l.failed(f.attempt, f.err, false)
			return
		}
		if !l.answer(c, f.attempt) {
			return
		}
	}
	if l.keep.Load() && l.ctx.Err() == nil {
		c.Release()
	} else {
		c.Close()
	}
}

// next waits for the next request whose answer is to be read; ok is false if there is none. Meanwhile the connection
// holds no memory.
func (l *connLoop) next() (f sending, ok bool) {
	select {
	case f, ok = <-l.sent:
	default:
		l.letGo()
		f, ok = <-l.sent
	}
	return f, ok
}

// letGo gives back the block that the reader fills.
func (l *connLoop) letGo() {
	if l.block != nil {
		l.block.free()
		l.block = nil
	}
}

// answer reads one answer; it returns false if the connection loop ends with it.
func (l *connLoop) answer(c Conn, f *attempt) bool {
	response, err := c.Next()
	if f.request.Want == nil && response != nil { // the loop decides how to use it
		l.r.tell(event{conn: l, attempt: f, response: response, err: err})
		select {
		case v := <-f.verdict:
			switch v {
			case opening.Stream:
				return false // the connection belongs to the response now
			case opening.Drop, opening.Repeat:
				c.Close()
				return false
			}
		case <-l.ctx.Done():
			c.Close()
			return false
		}
	} else {
		if err != nil && response != nil && c.Info().Multiplexed { // an intact answer: the loop closes if it must
			response.Body.Close()
			l.failed(f, err, true)
			return true
		}
		if err != nil {
			c.Close()
			l.failed(f, err, false)
			return false
		}
		l.r.tell(event{conn: l, attempt: f, Event: transfer.Event{
			Kind:    transfer.HeadReceived,
			Attempt: f.id,
			Range:   response.Range,
			Size:    response.ID.Total,
			Close:   response.Close,
		}})
	}
	if err := l.body(c, f, response.Body, response.Range); err != nil {
		c.Close()
		l.failed(f, err, false)
		return false
	}
	l.r.tell(event{
		conn: l, attempt: f, Event: transfer.Event{Kind: transfer.Ended, Attempt: f.id, Outcome: fault.Complete},
	})
	return true
}

// A read that returns less than a batch shows that the reader keeps up with the link, unless the connection is behind.
// The reader then lets bytes gather in the socket: most of the processor time of a transfer goes into waking up. It
// does not wait at the end of a range, nor for the first bytes of a connection, from which the kernel derives the size
// of its receive buffer.
const (
	starting  = 512 << 10 // bytes
	batch     = 16 << 10  // bytes
	batchTime = 4 * time.Millisecond
)

// body reads the bytes of r, as far as the credit goes.
func (l *connLoop) body(c Conn, f *attempt, from io.Reader, r segment.Range) error {
	for at := r.Start; ; {
		end := min(r.End, f.end.Load())
		limit := min(f.credit.Load(), end)
		if at >= limit && at < end {
			select {
			case <-f.more:
				continue
			case <-l.ctx.Done():
				return &AttemptError{Op: "body", Outcome: fault.Canceled, Err: context.Canceled}
			}
		}
		if l.block == nil || l.fill == blockSize {
			l.letGo()
			l.block, l.fill = l.r.e.blocks.get(), 0
		}
		b, fill := l.block, l.fill
		n, err := from.Read(b.data[fill:min(blockSize, int64(fill)+max(limit-at, 0))])
		if n > 0 {
			b.hold()
			l.r.tell(event{
				conn: l, attempt: f, piece: piece{off: at, b: b, lo: fill, hi: fill + n},
				Event: transfer.Event{Kind: transfer.Read, Attempt: f.id, N: int64(n)},
			})
			at += int64(n)
			l.fill += n
			if l.got += int64(n); n < batch && end-at > batch && l.got > starting && !c.Behind() {
				time.Sleep(batchTime)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// failed reports to the loop that an attempt failed, and whether the connection stays.
func (l *connLoop) failed(f *attempt, err error, stays bool) {
	e := event{conn: l, attempt: f, err: err, Event: transfer.Event{
		Kind: transfer.Ended, Attempt: f.id, Outcome: fault.Reset, Stays: stays,
	}}
	if a := new(AttemptError); errors.As(err, &a) {
		e.Outcome, e.RetryAfter = a.Outcome, a.RetryAfter
	}
	l.r.tell(e)
}

// refusedByOrigin reports whether an error shows that the origin was reached: it refused, or its name does not exist.
func refusedByOrigin(err error) bool {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}
