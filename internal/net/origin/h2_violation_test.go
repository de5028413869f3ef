package origin_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// violation is something that an origin does after a request on stream 1 for the bytes 0 to 99 of 1000.
type violation struct {
	name string
	play func(f *flooder)
	code http2.ErrCode // of GOAWAY or RST_STREAM
	want fault.Outcome // of the answer; Complete: it is fine
}

// answered sends the head of the answer.
func (f *flooder) answered() {
	f.answer(1, "206", "content-range", "bytes 0-99/1000")
}

// raw sends any frame.
func raw(kind http2.FrameType, flags http2.Flags, stream uint32, payload ...byte) func(*flooder) {
	return func(f *flooder) { f.fr.WriteRawFrame(kind, flags, stream, payload) }
}

// repeat repeats a frame until the client notices.
func repeat(n int, play func(*flooder)) func(*flooder) {
	return func(f *flooder) {
		for range n {
			play(f)
			f.mu.Lock()
			broken := f.err != nil || len(f.goAway) > 0
			f.mu.Unlock()
			if broken {
				return
			}
		}
	}
}

// block answers with a field block.
func block(flags http2.Flags, pairs ...string) func(*flooder) {
	return func(f *flooder) {
		f.fr.WriteRawFrame(http2.FrameHeaders, flags|http2.FlagHeadersEndHeaders, 1, bytes.Clone(f.fields(pairs...)))
	}
}

// then performs one violation after the other.
func then(steps ...func(*flooder)) func(*flooder) {
	return func(f *flooder) {
		for _, s := range steps {
			s(f)
		}
	}
}

func head(f *flooder) { f.answered() }

func body(n int, end bool) func(*flooder) {
	return func(f *flooder) { f.data(1, n, end) }
}

func setting(id http2.SettingID, v uint32) func(*flooder) {
	return func(f *flooder) { f.fr.WriteSettings(http2.Setting{ID: id, Val: v}) }
}

// connectionErrors are violations that end the connection (RFC 9113 section 5.4.1).
func connectionErrors() []violation {
	const (
		protocol, size, flow  = http2.ErrCodeProtocol, http2.ErrCodeFrameSize, http2.ErrCodeFlowControl
		closed, packing, calm = http2.ErrCodeStreamClosed, http2.ErrCodeCompression, http2.ErrCodeEnhanceYourCalm
	)
	done := then(head, body(100, true))
	return []violation{
		{"section 4.2: a frame above the limit", raw(http2.FrameData, 0, 1, make([]byte, 64<<10+1)...), size, fault.Unwanted},
		{"section 4.2: an unknown frame above the limit", raw(99, 0, 0, make([]byte, 64<<10+1)...), size, fault.Unwanted},
		{"section 4.3: an index that there is not", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, 0xff, 0xff, 0x01), packing, fault.Unwanted},
		{"section 4.3: a field block cut short", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, 0x40, 0x05, 'a'), packing, fault.Unwanted},
		{"section 4.3.1: a dynamic table above the limit", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, 0x3f, 0xe2, 0x1f, 0x88), packing, fault.Unwanted},
		{"section 5.1: DATA on an idle stream", raw(http2.FrameData, 0, 3, 1), protocol, fault.Unwanted},
		{"section 5.1: HEADERS on an idle stream", func(f *flooder) { f.answer(3, "206") }, protocol, fault.Unwanted},
		{"section 5.1: RST_STREAM of an idle stream", raw(http2.FrameRSTStream, 0, 3, 0, 0, 0, 0), protocol, fault.Unwanted},
		{"section 5.1: WINDOW_UPDATE of an idle stream", raw(http2.FrameWindowUpdate, 0, 3, 0, 0, 0, 1), protocol, fault.Unwanted},
		{"section 5.1: DATA after END_STREAM", then(done, body(1, false)), closed, fault.Complete},
		{"section 5.1: HEADERS after END_STREAM", then(done, head), closed, fault.Complete},
		{"section 5.1.1: a stream of the origin's own", func(f *flooder) { f.answer(2, "206") }, protocol, fault.Unwanted},
		{"section 6.1: DATA of no stream", raw(http2.FrameData, 0, 0, 1), protocol, fault.Unwanted},
		{"section 6.1: more padding than DATA", then(head, raw(http2.FrameData, http2.FlagDataPadded, 1, 5, 0, 0, 0, 0)), protocol, fault.Reset},
		{"section 6.1: padded DATA without a length", then(head, raw(http2.FrameData, http2.FlagDataPadded, 1)), size, fault.Reset},
		{"section 6.2: HEADERS of no stream", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, 0x88), protocol, fault.Unwanted},
		{"section 6.2: more padding than HEADERS", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPadded, 1, 9, 0x88), protocol, fault.Unwanted},
		{"section 6.2: padded HEADERS without a length", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPadded, 1), size, fault.Unwanted},
		{"section 6.2: HEADERS with half a priority", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPriority, 1, 0, 0), size, fault.Unwanted},
		{"section 6.3: PRIORITY of no stream", raw(http2.FramePriority, 0, 0, 0, 0, 0, 0, 0), protocol, fault.Unwanted},
		{"section 6.3: PRIORITY of a wrong length", raw(http2.FramePriority, 0, 1, 0, 0, 0, 0), size, fault.Unwanted},
		{"section 6.4: RST_STREAM of no stream", raw(http2.FrameRSTStream, 0, 0, 0, 0, 0, 0), protocol, fault.Unwanted},
		{"section 6.4: RST_STREAM of a wrong length", raw(http2.FrameRSTStream, 0, 1, 0, 0, 0), size, fault.Unwanted},
		{"section 6.5: SETTINGS of a stream", raw(http2.FrameSettings, 0, 1), protocol, fault.Unwanted},
		{"section 6.5: SETTINGS of a wrong length", raw(http2.FrameSettings, 0, 0, 0, 0, 0), size, fault.Unwanted},
		{"section 6.5: an acknowledgment with content", raw(http2.FrameSettings, http2.FlagSettingsAck, 0, 0, 1, 0, 0, 0, 0), size, fault.Unwanted},
		{"section 6.5: an acknowledgment of nothing", repeat(2, raw(http2.FrameSettings, http2.FlagSettingsAck, 0)), protocol, fault.Unwanted},
		{"section 6.5.2: ENABLE_PUSH of a server", setting(http2.SettingEnablePush, 1), protocol, fault.Unwanted},
		{"section 6.5.2: ENABLE_PUSH 2", setting(http2.SettingEnablePush, 2), protocol, fault.Unwanted},
		{"section 6.5.2: INITIAL_WINDOW_SIZE above 2^31-1", setting(http2.SettingInitialWindowSize, 1<<31), flow, fault.Unwanted},
		{"section 6.5.2: MAX_FRAME_SIZE below 16384", setting(http2.SettingMaxFrameSize, 16383), protocol, fault.Unwanted},
		{"section 6.5.2: MAX_FRAME_SIZE above 2^24-1", setting(http2.SettingMaxFrameSize, 1<<24), protocol, fault.Unwanted},
		{"section 6.6: PUSH_PROMISE", raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, 0, 0, 0, 2, 0x82), protocol, fault.Unwanted},
		{"section 6.7: PING of a stream", raw(http2.FramePing, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0), protocol, fault.Unwanted},
		{"section 6.7: PING of a wrong length", raw(http2.FramePing, 0, 0, 0, 0, 0, 0, 0, 0, 0), size, fault.Unwanted},
		{"section 6.8: GOAWAY of a stream", raw(http2.FrameGoAway, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0), protocol, fault.Unwanted},
		{"section 6.8: GOAWAY of a wrong length", raw(http2.FrameGoAway, 0, 0, 0, 0, 0, 0), size, fault.Unwanted},
		{"section 6.9: WINDOW_UPDATE of a wrong length", raw(http2.FrameWindowUpdate, 0, 0, 0, 0, 1), size, fault.Unwanted},
		{"section 6.9: WINDOW_UPDATE of 0", raw(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 0), protocol, fault.Unwanted},
		{"section 6.9.1: DATA beyond the window of the connection", then(head, raw(http2.FrameData, 0, 1, make([]byte, 64<<10)...)), flow, fault.Reset},
		{"section 6.9.1: more than was asked for", then(head, repeat(2, raw(http2.FrameData, 0, 1, make([]byte, 100)...))), calm, fault.BadRange},
		{"section 6.9.1: the window of the connection above 2^31-1", raw(http2.FrameWindowUpdate, 0, 0, 0x7f, 0xff, 0xff, 0xff), flow, fault.Unwanted},
		{"section 6.9.2: the window of a stream above 2^31-1 by SETTINGS", then(
			raw(http2.FrameWindowUpdate, 0, 1, 0x40, 0, 0, 0), setting(http2.SettingInitialWindowSize, 1<<30),
		), flow, fault.Unwanted},
		{"section 6.10: CONTINUATION of nothing", raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 1, 0x88), protocol, fault.Unwanted},
		{"section 6.10: CONTINUATION of no stream", then(raw(http2.FrameHeaders, 0, 1, 0x88), raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 0)), protocol, fault.Unwanted},
		{"section 6.10: CONTINUATION of another stream", then(raw(http2.FrameHeaders, 0, 1, 0x88), raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 3)), protocol, fault.Unwanted},
		{"section 6.10: a frame within a field block", then(raw(http2.FrameHeaders, 0, 1, 0x88), raw(http2.FramePing, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), protocol, fault.Unwanted},
		{"RFC 9218 section 7.1: PRIORITY_UPDATE of a server", raw(http2.FramePriorityUpdate, 0, 0, 0, 0, 0, 1), protocol, fault.Unwanted},
		{"section 10.5: PING without end", repeat(2000, raw(http2.FramePing, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)), calm, fault.Unwanted},
		{"section 10.5: SETTINGS without end", repeat(2000, raw(http2.FrameSettings, 0, 0)), calm, fault.Unwanted},
		{"section 10.5: empty DATA without end", then(head, repeat(2000, body(0, false))), calm, fault.Reset},
		{"section 10.5: PRIORITY without end", repeat(2000, raw(http2.FramePriority, 0, 1, 0, 0, 0, 0, 0)), calm, fault.Unwanted},
		{"section 10.5: unknown frames without end", repeat(2000, raw(99, 0, 0, 1)), calm, fault.Unwanted},
		{"section 10.5: RST_STREAM without end", then(done, repeat(2000, raw(http2.FrameRSTStream, 0, 1, 0, 0, 0, 8))), calm, fault.Complete},
		{"section 10.5: WINDOW_UPDATE without end", repeat(2000, raw(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 1)), calm, fault.Unwanted},
		{"section 10.5.1: CONTINUATION without end", then(raw(http2.FrameHeaders, 0, 1, 0x88), repeat(2000, func(f *flooder) {
			f.fr.WriteContinuation(1, false, bytes.Clone(f.fields("x", strings.Repeat("y", 10_000))))
		})), protocol, fault.Unwanted},
		{"section 10.5: empty CONTINUATION without end", then(raw(http2.FrameHeaders, 0, 1, 0x88), repeat(1<<20, raw(http2.FrameContinuation, 0, 1))), calm, fault.Unwanted},
	}
}

// streamErrors are violations that end one stream (RFC 9113 sections 5.4.2 and 8.1.1).
func streamErrors() []violation {
	const protocol = http2.ErrCodeProtocol
	bad := func(name string, pairs ...string) violation {
		return violation{name, block(0, pairs...), protocol, fault.Unwanted}
	}
	ok := []string{":status", "206", "etag", h2Tag, "content-range", "bytes 0-99/1000"}
	with := func(pairs ...string) []string { return append(slices.Clone(ok), pairs...) }
	all := []violation{
		{"section 6.9: WINDOW_UPDATE of 0 for a stream", raw(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 0), protocol, fault.Unwanted},
		{
			"section 6.9.1: the window of a stream above 2^31-1", raw(http2.FrameWindowUpdate, 0, 1, 0x7f, 0xff, 0xff, 0xff),
			http2.ErrCodeFlowControl, fault.Unwanted,
		},
		{"section 8.1: DATA before HEADERS", body(100, true), protocol, fault.Unwanted},
		{"section 8.1: a second head", then(head, body(10, false), head), protocol, fault.Unwanted},
		{"section 8.1: trailers with :status", then(head, body(100, false), block(http2.FlagHeadersEndStream, ":status", "206")), protocol, fault.Reset},
		{"section 8.1.1: more than Content-Length", then(block(0, with("content-length", "100")...), body(101, true)), protocol, fault.BadRange},
		bad("section 8.1.1: Content-Length twice", with("content-length", "100", "content-length", "100")...),
		bad("section 8.1.1: a negative Content-Length", with("content-length", "-100")...),
		bad("section 8.1.1: Content-Length that is no number", with("content-length", "100, 100")...),
		{"section 8.1.1: the end within an interim answer", block(http2.FlagHeadersEndStream, ":status", "103"), protocol, fault.Unwanted},
		bad("section 8.2.1: an upper-case letter", with("X-A", "b")...),
		bad("section 8.2.1: a space in a name", with("x a", "b")...),
		bad("section 8.2.1: a colon in a name", with("x:a", "b")...),
		bad("section 8.2.1: an empty name", with("", "b")...),
		bad("section 8.2.1: NUL in a value", with("x-a", "a\x00b")...),
		bad("section 8.2.1: CR in a value", with("x-a", "a\rb")...),
		bad("section 8.2.1: LF in a value", with("x-a", "a\nb")...),
		bad("section 8.2.2: Connection", with("connection", "close")...),
		bad("section 8.2.2: Keep-Alive", with("keep-alive", "timeout=5")...),
		bad("section 8.2.2: Proxy-Connection", with("proxy-connection", "close")...),
		bad("section 8.2.2: Transfer-Encoding", with("transfer-encoding", "chunked")...),
		bad("section 8.2.2: Upgrade", with("upgrade", "h2c")...),
		bad("section 8.3: a pseudo-field behind a field", "etag", h2Tag, ":status", "206"),
		bad("section 8.3: an unknown pseudo-field", ":status", "206", ":x", "y"),
		bad("section 8.3: a pseudo-field of requests", ":status", "206", ":path", "/"),
		bad("section 8.3: a pseudo-field of requests alone", ":path", "/"),
		bad("section 8.3: :status twice", ":status", "206", ":status", "206"),
		bad("section 8.3.2: no :status", "etag", h2Tag),
		bad("section 8.3.2: an empty :status", ":status", ""),
		bad("section 8.3.2: :status of two digits", ":status", "20"),
		bad("section 8.3.2: :status of four digits", ":status", "2060"),
		bad("section 8.3.2: :status with a sign", ":status", "+20"),
		bad("section 8.3.2: :status below 100", ":status", "099"),
		bad("section 8.6: 101", ":status", "101"),
	}
	// An error after a good head is an error of the body.
	for i := range all {
		if all[i].name == "section 8.1: a second head" {
			all[i].want = fault.Reset
		}
	}
	return all
}

// TestH2Violations: R131: a violation ends the connection or the stream, with the code that the RFC names, and the attempt. After
// an error of one stream the connection stays usable.
func TestH2Violations(t *testing.T) {
	try := func(t *testing.T, v violation, connection, stranger bool) {
		cert, roots := certificate(t)
		synctest.Test(t, func(t *testing.T) {
			var f *flooder
			origins := flooders
			if stranger {
				origins = strangers
			}
			p := origins(t, cert, roots, func(g *flooder) {
				f = g
				if id := <-f.requests; id != 1 {
					t.Errorf("the first stream is %d", id)
				}
				v.play(f)
				for id := range f.requests {
					f.part(id, segment.Range{Start: 100, End: 200})
					f.data(id, 100, true)
				}
			})
			c, err := p.Open(t.Context(), links[0], scriptTarget)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			ask := scriptAsk(0)
			if err := c.Send(ask); err != nil {
				t.Fatal(err)
			}
			response, err := c.Next()
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
			}
			switch {
			case (v.want == fault.Complete) != (err == nil), err != nil && outcome(t, err) != v.want:
				t.Errorf("the answer: %v, want %v", err, v.want)
			}
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			if connection {
				if !slices.Equal(f.goAway, []http2.ErrCode{v.code}) || !errors.Is(f.err, io.EOF) {
					t.Errorf("GOAWAY %v, then %v, want %v", f.goAway, f.err, v.code)
				}
				return
			}
			if code, ok := f.reset[1]; !ok || code != v.code || len(f.goAway) > 0 || f.err != nil {
				t.Errorf("RST_STREAM %v, GOAWAY %v, %v, want %v alone", f.reset, f.goAway, f.err, v.code)
			}
		})
	}
	for _, v := range connectionErrors() {
		t.Run("R131 "+v.name, func(t *testing.T) { try(t, v, true, false) })
	}
	for _, v := range streamErrors() {
		t.Run("R131 "+v.name, func(t *testing.T) { try(t, v, false, false) })
	}
	for _, v := range []violation{
		{"section 3.4: no SETTINGS at first", head, http2.ErrCodeProtocol, fault.Unwanted},
		{"section 3.4: an acknowledgment at first", raw(http2.FrameSettings, http2.FlagSettingsAck, 0), http2.ErrCodeProtocol, fault.Unwanted},
		{"section 3.4: HTTP/1.1", func(f *flooder) { io.WriteString(rawWriter{f}, "HTTP/1.1 400 Bad Request\r\n\r\n") }, http2.ErrCodeFrameSize, fault.Unwanted},
	} {
		t.Run("R131 "+v.name, func(t *testing.T) { try(t, v, true, true) })
	}
}

// TestH2StreamWindow: the window of the connection has room for another answer; that of a stream ends earlier.
func TestH2StreamWindow(t *testing.T) {
	t.Run("R131 section 6.9.1: DATA beyond the window of a stream", func(t *testing.T) {
		cert, roots := certificate(t)
		synctest.Test(t, func(t *testing.T) {
			var f *flooder
			p := flooders(t, cert, roots, func(g *flooder) {
				f = g
				long, other := <-f.requests, <-f.requests
				f.part(long, segment.Range{End: 6 << 20})
				f.pour(long, 4<<20)
				f.fr.WriteData(long, false, make([]byte, 16<<10))
				f.untilReset(long)
				f.part(other, segment.Range{End: 1 << 20})
				f.pour(other, 1<<20)
				f.end(other)
			})
			c, err := p.Open(t.Context(), links[0], scriptTarget)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			for _, n := range []int64{6 << 20, 1 << 20} {
				if err := c.Send(floodAsk(0, n)); err != nil {
					t.Fatal(err)
				}
			}
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n, err := io.Copy(io.Discard, response.Body); n != 4<<20 || outcome(t, err) != fault.Reset {
				t.Errorf("%d bytes, %v", n, err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.reset[1] != http2.ErrCodeFlowControl || len(f.goAway) > 0 {
				t.Errorf("RST_STREAM %v, GOAWAY %v", f.reset, f.goAway)
			}
		})
	})
}

// rawWriter writes bytes that are not a frame.
type rawWriter struct{ f *flooder }

func (w rawWriter) Write(p []byte) (int, error) { return w.f.wire.Write(p) }

// TestH2Tolerance: nothing that an origin may do, however odd, is held against it.
func TestH2Tolerance(t *testing.T) {
	good := func(f *flooder) { f.answered(); f.data(1, 100, true) }
	tests := []struct {
		name string
		play func(*flooder)
	}{
		{"nothing", good},
		{"section 4.1: unknown frames", then(raw(99, 0xff, 0, 1, 2), raw(99, 0, 1), good, raw(99, 0, 1))},
		{"section 4.3.1: a smaller dynamic table, then the largest", func(f *flooder) {
			f.henc.SetMaxDynamicTableSize(0)
			f.henc.SetMaxDynamicTableSize(4096)
			good(f)
		}},
		{"section 5.1: RST_STREAM and WINDOW_UPDATE of a closed stream", then(
			good, raw(http2.FrameRSTStream, 0, 1, 0, 0, 0, 0), raw(http2.FrameWindowUpdate, 0, 1, 0, 0, 0, 1),
		)},
		{"section 6.1: padding", func(f *flooder) { f.answered(); f.fr.WriteDataPadded(1, true, make([]byte, 100), make([]byte, 255)) }},
		{"section 6.1: an empty end", then(head, body(100, false), body(0, true))},
		{"section 6.2: padding and priority", func(f *flooder) {
			f.fr.WriteHeaders(http2.HeadersFrameParam{
				StreamID: 1, EndHeaders: true, PadLength: 9, Priority: http2.PriorityParam{StreamDep: 1, Weight: 3},
				BlockFragment: f.fields(":status", "206", "etag", h2Tag, "content-range", "bytes 0-99/1000"),
			})
			f.data(1, 100, true)
		}},
		{"section 6.3: PRIORITY", then(raw(http2.FramePriority, 0, 1, 0, 0, 0, 0, 0), raw(http2.FramePriority, 0, 7, 0, 0, 0, 0, 0), good)},
		{"section 6.5: SETTINGS in between", then(
			setting(http2.SettingHeaderTableSize, 0), head, setting(http2.SettingMaxFrameSize, 1<<20), setting(0xff, 7),
			setting(http2.SettingInitialWindowSize, 0), setting(http2.SettingMaxHeaderListSize, 1<<20), body(100, true),
		)},
		{"section 6.7: PING", then(raw(http2.FramePing, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8), raw(http2.FramePing, http2.FlagPingAck, 0, 9, 9, 9, 9, 9, 9, 9, 9), good)},
		{"section 6.9: WINDOW_UPDATE", then(raw(http2.FrameWindowUpdate, 0, 0, 0, 1, 0, 0), raw(http2.FrameWindowUpdate, 0, 1, 0, 1, 0, 0), good)},
		{"section 6.10: a head in pieces", func(f *flooder) {
			b := bytes.Clone(f.fields(":status", "206", "etag", h2Tag, "content-range", "bytes 0-99/1000"))
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:1]})
			for i := 1; i < len(b); i++ {
				f.fr.WriteContinuation(1, i == len(b)-1, b[i:i+1])
			}
			f.data(1, 100, true)
		}},
		{"section 8.1: trailers", then(head, body(100, false), block(http2.FlagHeadersEndStream, "x-sum", "1"))},
		{"section 8.2.1: space around a value", then(block(0, ":status", "206", "etag", " "+h2Tag+"\t", "content-range", "bytes 0-99/1000"), body(100, true))},
		{"RFC 7838 section 4 and RFC 8336: ALTSVC and ORIGIN", then(raw(0xa, 0, 0, 0, 1, 'a'), raw(0xc, 0, 0, 0, 1, 'a'), good)},
		{"many PINGs among DATA", func(f *flooder) {
			f.answered()
			for i := range 100 {
				repeat(20, raw(http2.FramePing, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8))(f)
				f.data(1, 1, i == 99)
			}
		}},
	}
	for _, tt := range tests {
		t.Run("R131 "+tt.name, func(t *testing.T) {
			cert, roots := certificate(t)
			synctest.Test(t, func(t *testing.T) {
				p := flooders(t, cert, roots, func(f *flooder) {
					<-f.requests
					tt.play(f)
					for id := range f.requests {
						f.answer(id, "206", "content-range", "bytes 100-199/1000")
						f.data(id, 100, true)
					}
				})
				c, err := p.Open(t.Context(), links[0], scriptTarget)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				for n := range int64(2) {
					if err := c.Send(scriptAsk(n)); err != nil {
						t.Fatal(err)
					}
					response, err := c.Next()
					if err != nil {
						t.Fatal(err)
					}
					if k, err := io.Copy(io.Discard, response.Body); k != 100 || err != nil {
						t.Fatalf("%d bytes, %v", k, err)
					}
				}
				c.Release()
				again, err := p.Open(t.Context(), links[0], scriptTarget)
				if err != nil || !again.Info().Reused {
					t.Fatalf("not used again: %v", err)
				}
				again.Close()
			})
		})
	}
}
