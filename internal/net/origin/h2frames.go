package origin

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/net/http2"
)

const maxWindow = math.MaxInt32 // RFC 9113 section 6.9.1

// bounded reads no more than left bytes.
type bounded struct {
	br   *bufio.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, broken(http2.ErrCodeEnhanceYourCalm, "a head without end")
	}
	n, err := b.br.Read(p)
	b.left -= n
	return n, err
}

// readFrames handles frames until the connection ends, and returns the reason: an http2.ConnectionError if the origin
// broke the protocol (RFC 9113 section 5.4.1).
func (s *session) readFrames() error {
	for first := true; ; first = false {
		s.in.left = maxFrame
		h, err := s.fr.ReadFrameHeader()
		switch {
		case errors.Is(err, http2.ErrFrameTooLarge):
			return broken(http2.ErrCodeFrameSize, "a frame of "+h.Type.String()+" above the limit")
		case err != nil:
			return ended(err)
		case first && (h.Type != http2.FrameSettings || h.Flags.Has(http2.FlagSettingsAck)):
			return broken(http2.ErrCodeProtocol, "the first frame is not SETTINGS") // RFC 9113 section 3.4
		case h.Type == http2.FrameData:
			err = s.data(h)
		default:
			err = s.other(h)
		}
		if err != nil {
			return ended(err)
		}
	}
}

// other handles a frame that is not DATA.
func (s *session) other(h http2.FrameHeader) error {
	switch {
	case h.Type == http2.FramePushPromise:
		return broken(http2.ErrCodeProtocol, "PUSH_PROMISE, which SETTINGS forbid") // RFC 9113 section 8.4
	case h.Type == http2.FramePriorityUpdate:
		return broken(http2.ErrCodeProtocol, "PRIORITY_UPDATE, which is for clients") // RFC 9218 section 7.1
	case h.Type == http2.FrameHeaders && int(h.Length) < headersLeast(h.Flags):
		return broken(http2.ErrCodeFrameSize, "HEADERS too short for its flags") // the framer takes it for an early end
	}
	f, err := s.fr.ReadFrameForHeader(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.flushLater()
	if s.idle++; s.idle > maxIdleFrames {
		return broken(http2.ErrCodeEnhanceYourCalm, "frames that bring nothing")
	}
	if s.out.Len() > maxReplies {
		return broken(http2.ErrCodeEnhanceYourCalm, "the origin asks for answers that it does not take")
	}
	if stream, ok := errors.AsType[http2.StreamError](err); ok {
		if h.Type == http2.FrameHeaders && stream.Cause == nil { // padding; the field block was not decoded
			return broken(http2.ErrCodeProtocol, "malformed HEADERS")
		}
		return s.spoil(stream)
	}
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return s.headers(f)
	case *http2.SettingsFrame:
		return s.takeSettings(f)
	case *http2.PingFrame:
		if f.IsAck() {
			s.ping.acked(f.Data, time.Now())
			return nil
		}
		s.must(s.fr.WritePing(true, f.Data))
	case *http2.GoAwayFrame:
		s.goAway(f)
	case *http2.RSTStreamFrame:
		x, err := s.stream(f.StreamID)
		if err != nil || x == nil {
			return err
		}
		s.calmDown(f.ErrCode)
		x.fail(s, http2.StreamError{StreamID: f.StreamID, Code: f.ErrCode, Cause: errors.New("reset by the origin")})
		s.start()
	case *http2.WindowUpdateFrame:
		return s.windowUpdate(f)
	}
	return nil
}

// headersLeast returns the minimum length in bytes of HEADERS with these flags.
func headersLeast(flags http2.Flags) (n int) {
	if flags.Has(http2.FlagHeadersPadded) {
		n++
	}
	if flags.Has(http2.FlagHeadersPriority) {
		n += 5
	}
	return n
}

// stream returns the exchange on an open stream, or nil if the stream was closed. The origin must not open streams.
func (s *session) stream(id uint32) (*exchange, error) {
	if x := s.streams[id]; x != nil {
		return x, nil
	}
	if id%2 == 0 || id >= s.next {
		return nil, broken(http2.ErrCodeProtocol, "a frame on a stream that nobody opened") // RFC 9113 section 5.1
	}
	return nil, nil
}

// late accounts for n bytes on a closed stream. If this side reset the stream, the origin may not know yet. If the
// origin ended it, it must send nothing more (RFC 9113 section 5.1).
func (s *session) late(id uint32, n int64) error {
	for i := range s.reset {
		if r := &s.reset[i]; r.id == id {
			if r.left -= n; r.left < 0 {
				return broken(http2.ErrCodeFlowControl, "DATA beyond the window of a stream")
			}
			return nil
		}
	}
	return broken(http2.ErrCodeStreamClosed, "a frame on a closed stream")
}

// spoil resets a stream on which the origin broke the protocol (RFC 9113 section 5.4.2). s.mu is held.
func (s *session) spoil(e http2.StreamError) error {
	x, err := s.stream(e.StreamID)
	if x != nil {
		s.cancel(x, e.Code, fmt.Errorf("%w: %w", ErrMalformed, e))
	}
	return err
}

// cancel resets the stream of x and ends x with err. s.mu is held.
func (s *session) cancel(x *exchange, code http2.ErrCode, err error) {
	if !x.open() {
		return
	}
	s.must(s.fr.WriteRSTStream(x.id, code))
	if len(s.reset) == maxReset {
		s.reset = append(s.reset[:0], s.reset[1:]...)
	}
	s.reset = append(s.reset, resetStream{x.id, max(x.window, streamWindow)})
	x.fail(s, err)
	s.start()
}

// headers handles a head or trailers.
func (s *session) headers(f *http2.MetaHeadersFrame) error {
	x, err := s.stream(f.StreamID)
	switch {
	case err != nil:
		return err
	case x == nil:
		return s.late(f.StreamID, 0)
	}
	s.idle = 0
	switch {
	case f.Truncated:
		err = errHeadTooLong
	case x.resp != nil:
		err = x.trailers(f)
	default:
		err = x.head(f)
	}
	switch {
	case err != nil:
		s.cancel(x, http2.ErrCodeProtocol, err)
	case x.unwanted || x.size == 0 && x.cut:
		if f.StreamEnded() {
			s.finish(x)
		} else {
			s.cancel(x, http2.ErrCodeCancel, errEnd)
		}
	case f.StreamEnded():
		s.finish(x)
	default:
		s.fill(x)
	}
	s.change.Broadcast()
	return nil
}

// finish ends an answer that the origin ended with END_STREAM. s.mu is held.
func (s *session) finish(x *exchange) {
	if x.declared >= 0 && x.received < x.declared { // RFC 9113 section 8.1.1
		x.fail(s, ended(errEnd))
	} else {
		x.fail(s, errEnd)
	}
	s.start()
}

func (s *session) takeSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if s.unacked == 0 {
			return broken(http2.ErrCodeProtocol, "an acknowledgment of nothing")
		}
		s.unacked--
		return nil
	}
	for i := range f.NumSettings() {
		set := f.Setting(i)
		if err := set.Valid(); err != nil {
			return err
		}
		switch set.ID {
		case http2.SettingEnablePush:
			if set.Val != 0 { // RFC 9113 section 6.5.2
				return broken(http2.ErrCodeProtocol, "SETTINGS_ENABLE_PUSH of a server")
			}
		case http2.SettingHeaderTableSize:
			s.henc.SetMaxDynamicTableSize(set.Val)
		case http2.SettingMaxConcurrentStreams:
			s.peer.streams = set.Val
		case http2.SettingMaxFrameSize:
			s.peer.frame = set.Val
		case http2.SettingMaxHeaderListSize:
			s.peer.head = int64(set.Val)
		case http2.SettingInitialWindowSize:
			more := int64(set.Val) - s.peer.initial
			s.peer.initial = int64(set.Val)
			for _, x := range s.streams {
				if x.sendWindow += more; x.sendWindow > maxWindow {
					return broken(http2.ErrCodeFlowControl, "a window above 2^31-1")
				}
			}
		}
	}
	s.must(s.fr.WriteSettingsAck())
	s.settled = true
	s.start()
	return nil
}

// windowUpdate checks that a window stays within its limit (RFC 9113 section 6.9.1). This side sends no DATA.
func (s *session) windowUpdate(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if s.peer.window += int64(f.Increment); s.peer.window > maxWindow {
			return broken(http2.ErrCodeFlowControl, "a window above 2^31-1")
		}
		return nil
	}
	x, err := s.stream(f.StreamID)
	if x == nil {
		return err
	}
	if x.sendWindow += int64(f.Increment); x.sendWindow > maxWindow {
		return s.spoil(http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl})
	}
	return nil
}

// goAway handles GOAWAY: the origin still answers streams up to the last one that it names, and did not act on the
// others.
func (s *session) goAway(f *http2.GoAwayFrame) {
	s.away = true
	s.calmDown(f.ErrCode)
	for id, x := range s.streams {
		if id > f.LastStreamID {
			x.fail(s, awayError{f.ErrCode})
		}
	}
	s.start()
	s.change.Broadcast()
}

// calmDown records that an origin asked for calm.
func (s *session) calmDown(code http2.ErrCode) {
	if code == http2.ErrCodeEnhanceYourCalm {
		s.pace.silent.Store(true)
	}
}

// awayError means that the origin did not act on a request and closes the connection.
type awayError struct{ code http2.ErrCode }

func (e awayError) Error() string { return "GOAWAY: " + e.code.String() }

// data handles a DATA frame. Its bytes can be read as they arrive, before the frame is complete.
func (s *session) data(h http2.FrameHeader) error {
	size := int64(h.Length)
	left, pad := size, int64(0)
	if h.Flags.Has(http2.FlagDataPadded) {
		if left--; left < 0 {
			return broken(http2.ErrCodeFrameSize, "padded DATA without a length of its padding")
		}
		b, err := s.br.ReadByte()
		if err != nil {
			return err
		}
		if pad = int64(b); pad > left {
			return broken(http2.ErrCodeProtocol, "more padding than DATA")
		}
		left -= pad
	}
	s.mu.Lock()
	x, err := s.charge(h.StreamID, size, left)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for left > 0 {
		if _, err := s.br.Peek(1); err != nil {
			return err
		}
		b, _ := s.br.Peek(int(min(left, int64(s.br.Buffered()))))
		last := int64(len(b)) == left && pad == 0 && h.Flags.Has(http2.FlagDataEndStream)
		if err := s.take(x, b, last); err != nil {
			return err
		}
		_, _ = s.br.Discard(len(b)) // it is buffered
		left -= int64(len(b))
	}
	if _, err := s.br.Discard(int(pad)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.open() && h.Flags.Has(http2.FlagDataEndStream) {
		s.finish(x)
	}
	if pad > 0 && x.open() && x.window < x.due()+spare/2 {
		s.widen(x)
	}
	s.fill(x)
	s.measure(x)
	s.flushLater()
	return nil
}

// charge deducts a frame with n bytes of a body from the windows, and returns the exchange that receives them, or nil.
// s.mu is held.
func (s *session) charge(id uint32, size, n int64) (*exchange, error) {
	if id == 0 {
		return nil, broken(http2.ErrCodeProtocol, "DATA of no stream")
	}
	if s.credit -= size; s.credit < 0 {
		return nil, broken(http2.ErrCodeFlowControl, "DATA beyond the window of the connection")
	}
	x, err := s.stream(id)
	switch {
	case err != nil:
		return nil, err
	case x == nil:
		return nil, s.late(id, size)
	case x.resp == nil:
		return nil, s.spoil(http2.StreamError{
			StreamID: id, Code: http2.ErrCodeProtocol, Cause: errors.New("DATA before HEADERS"),
		})
	}
	x.window -= size
	if x.window < s.initial-streamWindow { // a window that was shrunk may be negative: more was on its way
		return nil, s.spoil(http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl, Cause: errFlood})
	}
	if n > 0 {
		s.idle = 0
	} else if s.idle++; s.idle > maxIdleFrames {
		return nil, broken(http2.ErrCodeEnhanceYourCalm, "frames that bring nothing")
	}
	// Bytes that were not asked for wait in TCP. Only the first answer in line may be this long, so its reader makes
	// room.
	for x.long && x.open() && x.held() >= maxOpen {
		s.flushLater()
		s.change.Wait()
	}
	if !x.open() {
		return nil, s.err
	}
	x.coming = n
	return x, nil
}

// take stores bytes of a body. last reports whether the answer ends with them; its reader then wakes up once, not
// twice.
func (s *session) take(x *exchange, b []byte, last bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.open() {
		return nil
	}
	n := int64(len(b))
	room := n
	if x.size >= 0 {
		room = min(n, x.size-x.received)
	}
	x.unread.write(s.chunks, b[:room])
	x.received += room
	x.coming -= n
	switch {
	case x.cut && x.received == x.size:
		s.cancel(x, http2.ErrCodeCancel, errEnd)
	case room == n:
	case x.declared >= 0 && x.received+n-room > x.declared: // RFC 9113 section 8.1.1
		s.cancel(x, http2.ErrCodeProtocol, errLonger)
	default:
		x.fail(s, errSurplus)
		return fmt.Errorf("%w: %w", errFlood, http2.ConnectionError(http2.ErrCodeEnhanceYourCalm))
	}
	switch {
	case last && x.open():
		s.finish(x)
	case x == s.queue[0]:
		s.change.Broadcast()
	}
	return nil
}
