package origin

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/time/rate"
)

// Limits of an HTTP/2 connection, in bytes.
const (
	// streamWindow is SETTINGS_INITIAL_WINDOW_SIZE: the most that an origin may send ahead of the reader of one answer.
	// A longer answer still gets half of it per round trip, 168 Mbit/s at 100 ms, and several ranges in flight fill a
	// connection.
	streamWindow = 4 << 20
	// maxUnread bounds the unread bytes of all answers together. It is above 100 ms x 500 Mbit/s = 6.25 MB.
	maxUnread = 8 << 20
	// maxOpen bounds the unread bytes of an answer that may be longer than asked. It is small, since a transfer may
	// send such a request without a grant. Beyond it the connection is not read, so that TCP slows the origin down as
	// over HTTP/1.1.
	maxOpen = 128 << 10
	// spare is how far the window of a connection exceeds the requested bytes: padding and cancelled answers need room,
	// too.
	spare = initialWindow
	// initialWindow is the window of a new connection (RFC 9113 section 6.9.2). No SETTINGS change it.
	initialWindow = 65_535
	// readFrame is the largest frame accepted. The default, 16 KiB, would mean four times as many frames at high rates.
	readFrame = 64 << 10
	// readBuffer holds the heads of frames: TLS keeps the rest of a record itself, and larger reads bypass the buffer.
	readBuffer = 4 << 10
)

// Limits for frames that do not advance a response.
const (
	// maxIdleFrames is how many such frames may arrive in a row.
	maxIdleFrames = 1000
	// maxFrame bounds a frame that is not DATA with its CONTINUATIONs, which may be empty and endless.
	maxFrame = readFrame + 2*MaxHead
	// maxReplies bounds the bytes that wait to be written, acknowledgments included. The requests in flight need less.
	maxReplies = 2 * MaxHead
	// maxReset is how many streams are remembered after this side reset them, since their frames may still be under
	// way.
	maxReset = 128
	// maxStreams limits the concurrent streams to an origin that names no limit.
	maxStreams = 100
)

// PING measures the delay of an answer under load (Nikravesh 2018 chapter 6), and SETTINGS cut answers. Origins take
// frequent ones for an attack: Apache Traffic Server closes a connection that brings more than 60 PING or 14 SETTINGS a
// minute, counting the first SETTINGS and the acknowledgment of its own. So PINGs are frequent only for the first
// seconds under load.
const (
	pingEvery  = 100 * time.Millisecond
	pingBurst  = 30
	pingLater  = 2500 * time.Millisecond
	clampBurst = 3 // a cut costs two SETTINGS at most
	clampLater = 30 * time.Second
)

// goAwayTime bounds the attempt to tell an origin why its connection is closed.
const goAwayTime = time.Second

var (
	errGoingAway = errors.New("the origin accepts no further requests on this connection")
	errUnwanted  = errors.New("the response was cancelled: it is not the requested one")
	errFlood     = errors.New("the origin sends more than was requested")
	errLonger    = fmt.Errorf("%w: more bytes than its Content-Length", ErrMalformed)
	errTooLong   = errors.New("the request head is longer than the origin accepts")
)

// session is an HTTP/2 connection to an origin that carries GETs. Flow control bounds its memory: the origin may send
// the requested bytes plus spare, and no more (see fill).
//
// One goroutine, the reader, handles all frames until the connection ends; close waits for it. Any goroutine may write
// frames: they collect in out, and flush sends them.
type session struct {
	conn   net.Conn // TLS
	socket net.Conn // below it: Close sends no alert, which could block
	chunks *sync.Pool
	br     *bufio.Reader
	in     bounded       // reads br
	fr     *http2.Framer // reads in, writes to out; mu guards writing
	done   chan struct{} // closed when the reader has ended
	alive  sync.WaitGroup

	mu     sync.Mutex
	change sync.Cond // wakes readers of answers, and the reader of the connection when it waits for one of these
	err    error     // why the connection is dead
	away   bool      // the origin accepts no more requests

	out, sending bytes.Buffer
	writing      bool // a goroutine is sending
	block        bytes.Buffer
	henc         *hpack.Encoder

	settled bool // the origin's SETTINGS have arrived
	unacked int  // SETTINGS of this side that the origin has not acknowledged
	peer    settings

	queue   []*exchange // not yet read to the end, in the order of the requests
	started int         // how many of them were sent
	streams map[uint32]*exchange
	reset   []resetStream
	next    uint32 // number of the next stream

	initial int64 // SETTINGS_INITIAL_WINDOW_SIZE as last sent
	credit  int64 // bytes that the origin may still send
	idle    int   // frames in a row that did not advance an answer
	ping    ping
	pings   *rate.Limiter
	clamps  *rate.Limiter
	pace    *pace
}

// pace records how patient an origin is. All sessions with the origin share it.
type pace struct {
	silent atomic.Bool // the origin asked for calm: it gets no more PING frames, nor SETTINGS that cut
}

// settings are the values that the origin announced.
type settings struct {
	streams uint32 // SETTINGS_MAX_CONCURRENT_STREAMS
	frame   uint32 // SETTINGS_MAX_FRAME_SIZE
	head    int64  // SETTINGS_MAX_HEADER_LIST_SIZE, -1 = no limit
	initial int64  // SETTINGS_INITIAL_WINDOW_SIZE
	window  int64  // of the connection; this side never sends DATA
}

// resetStream is a stream that this side reset.
type resetStream struct {
	id   uint32
	left int64 // bytes that the origin may still send on it
}

// negotiate starts an HTTP/2 session on a connection whose handshake selected HTTP/2 (RFC 7301).
func (s *stream) negotiate(p *Pool) error {
	tc, ok := s.conn.(*tls.Conn)
	if !ok || tc.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
		return nil
	}
	var err error
	s.h2, err = newSession(tc, s.socket, &p.chunks, p.paceOf(s.key.host))
	return err
}

// newSession starts a session on a connection.
func newSession(conn, socket net.Conn, chunks *sync.Pool, calm *pace) (*session, error) {
	s := &session{
		conn:   conn,
		socket: socket,
		chunks: chunks,
		br:     bufio.NewReaderSize(conn, readBuffer),
		done:   make(chan struct{}),
		peer: settings{
			streams: maxStreams,
			frame:   16 << 10,
			head:    -1,
			initial: initialWindow,
			window:  initialWindow,
		},
		streams: map[uint32]*exchange{},
		next:    1,
		initial: streamWindow,
		credit:  initialWindow,
		pace:    calm,
		pings:   rate.NewLimiter(rate.Every(pingLater), pingBurst),
		clamps:  rate.NewLimiter(rate.Every(clampLater), clampBurst),
	}
	s.change.L = &s.mu
	s.henc = hpack.NewEncoder(&s.block)
	s.in.br = s.br
	s.fr = http2.NewFramer(&s.out, &s.in)
	s.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.fr.MaxHeaderListSize = MaxHead
	s.fr.SetMaxReadFrameSize(readFrame)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.WriteString(http2.ClientPreface)
	s.settings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: readFrame},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: MaxHead},
	)
	s.flush()
	if s.err != nil {
		return nil, s.err
	}
	go s.run()
	return s, nil
}

// live reports whether the origin accepts another request. s.mu is held.
func (s *session) live() bool { return s.err == nil && !s.away && s.next < 1<<31 }

// usable reports whether a later transfer may use the connection.
func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live() && len(s.queue) == 0
}

// close ends the session and waits for its goroutines.
func (s *session) close() {
	s.mu.Lock()
	s.die(errClosed)
	s.mu.Unlock()
	s.socket.Close()
	<-s.done
	s.alive.Wait()
}

// die ends every exchange with err. Bytes that already arrived can still be read. s.mu is held.
func (s *session) die(err error) {
	if s.err == nil {
		s.err = err
	}
	for _, x := range s.queue {
		x.fail(s, s.err)
	}
	s.change.Broadcast()
}

// run reads frames until the connection ends.
func (s *session) run() {
	defer close(s.done)
	err := s.readFrames()
	s.mu.Lock()
	if code, ok := errors.AsType[http2.ConnectionError](err); ok && s.err == nil {
		_ = s.conn.SetWriteDeadline(time.Now().Add(goAwayTime))
		s.must(s.fr.WriteGoAway(0, http2.ErrCode(code), nil))
		for s.flush(); s.writing; {
			s.change.Wait()
		}
	}
	s.die(err)
	s.mu.Unlock()
	s.socket.Close()
}

// must ends the session if a frame could not be written to out: it was not a legal frame. s.mu is held.
func (s *session) must(err error) {
	if err != nil {
		s.die(fmt.Errorf("write a frame: %w", err))
	}
}

// settings sends SETTINGS. s.mu is held.
func (s *session) settings(all ...http2.Setting) {
	s.must(s.fr.WriteSettings(all...))
	s.unacked++
}

// flush sends the bytes in out. If another goroutine is already sending, it sends them too. s.mu is held, but released
// while writing to the connection.
func (s *session) flush() {
	if s.writing {
		return
	}
	s.writing = true
	for s.out.Len() > 0 && s.err == nil {
		s.out, s.sending = s.sending, s.out
		s.mu.Unlock()
		_, err := s.conn.Write(s.sending.Bytes())
		s.mu.Lock()
		s.sending.Reset()
		if err != nil {
			s.die(err)
		}
	}
	s.writing = false
	s.change.Broadcast()
}

// flushLater flushes in another goroutine, for callers that must not wait: those that cut, and the reader, since an
// origin that is blocked in a write may not read. s.mu is held.
func (s *session) flushLater() {
	if s.out.Len() > 0 && !s.writing && s.err == nil {
		s.alive.Go(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.flush()
		})
	}
}

// broken returns a connection error with this code and a reason for the log.
func broken(code http2.ErrCode, reason string) error {
	return fmt.Errorf("%s: %w", reason, http2.ConnectionError(code))
}

// ended converts the end of a connection into an error that cannot be taken for the proper end of an answer.
func ended(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
