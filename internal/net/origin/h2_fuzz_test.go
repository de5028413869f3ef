package origin

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// transcript is what an origin might send, frame by frame.
func transcript(write func(fr *http2.Framer, block func(pairs ...string) []byte)) []byte {
	var out, fields bytes.Buffer
	fr := http2.NewFramer(&out, nil)
	fr.AllowIllegalWrites = true
	enc := hpack.NewEncoder(&fields)
	write(fr, func(pairs ...string) []byte {
		fields.Reset()
		for i := 0; i < len(pairs); i += 2 {
			_ = enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
		}
		return fields.Bytes()
	})
	return out.Bytes()
}

// FuzzR202_H2Frames: whatever an origin sends over HTTP/2, there is no panic and no goroutine left, errors are typed, and an
// accepted range is one that was requested. Its body has no more bytes than the range or, once it is cut, than are wanted, and no
// more bytes wait to be read than were requested.
func FuzzR202_H2Frames(f *testing.F) {
	good := []string{":status", "206", "etag", `"a"`, "content-range", "bytes 100-199/1000"}
	next := []string{":status", "206", "etag", `"a"`, "content-range", "bytes 200-299/1000", "content-length", "100"}
	head := func(fr *http2.Framer, id uint32, end bool, block []byte) {
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end})
	}
	for _, write := range []func(fr *http2.Framer, block func(...string) []byte){
		func(fr *http2.Framer, block func(...string) []byte) {
			fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			fr.WriteSettingsAck()
			head(fr, 1, false, block(":status", "103", "link", "x"))
			head(fr, 1, false, block(good...))
			fr.WriteDataPadded(1, false, make([]byte, 60), make([]byte, 9))
			fr.WritePing(false, [8]byte{1})
			fr.WriteData(1, true, make([]byte, 40))
			head(fr, 3, false, block(next...))
			fr.WriteData(3, false, make([]byte, 100))
			head(fr, 3, true, block("x-sum", "1"))
		},
		func(fr *http2.Framer, block func(...string) []byte) {
			fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
			b := bytes.Clone(block(good...))
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:3]})
			fr.WriteContinuation(1, true, b[3:])
			fr.WriteData(1, false, make([]byte, 101))
			fr.WriteRSTStream(1, http2.ErrCodeInternal)
		},
		func(fr *http2.Framer, block func(...string) []byte) {
			fr.WriteSettings()
			fr.WriteGoAway(1, http2.ErrCodeEnhanceYourCalm, nil)
			head(fr, 1, false, block(":status", "200", "etag", `"a"`, "content-length", "1000"))
			fr.WriteData(1, false, make([]byte, 200))
			fr.WriteWindowUpdate(0, 5)
			fr.WriteWindowUpdate(1, 0)
			fr.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: block(":method", "GET"), EndHeaders: true})
		},
	} {
		for mode := range byte(8) {
			f.Add(transcript(write), mode)
		}
	}
	f.Fuzz(func(t *testing.T, sent []byte, mode byte) {
		known, cut, asks := mode&1 != 0, mode&2 != 0, 2-int(mode>>2&1)
		near, far := net.Pipe()
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			go io.Copy(io.Discard, far) // ends with the pipe
			far.Write(sent)
			far.Close()
		}()
		p := New(nil)
		h2, err := newSession(near, near, &p.chunks, new(pace))
		if err != nil {
			return // the origin closed at once
		}
		c := newH2Conn(p, &stream{key: key{link: "w0"}, socket: near, conn: near, h2: h2}, false)
		defer func() {
			c.Close()
			<-h2.done
			<-taken
		}()
		typed := func(err error) {
			var a *engine.AttemptError
			if !errors.As(err, &a) || a.Outcome == fault.Complete {
				t.Fatalf("%v is no AttemptError", err)
			}
		}
		var all []engine.RangeRequest
		for i := range asks {
			start := int64(100 + 100*i)
			a := engine.RangeRequest{
				ID: uint32(i), Target: engine.Target{Scheme: "https", Host: "h", Path: "/"}, Range: segment.Range{Start: start, End: start + 100},
			}
			if known {
				a.Want = &engine.Identity{Total: 1000, Validator: strong, ETag: strong}
			}
			if err := c.Send(a); err != nil {
				typed(err)
				return
			}
			all = append(all, a)
		}
		for i, a := range all {
			if cut && i == 1 {
				c.Cut(1, 250)
			}
			response, err := c.Next()
			if err != nil {
				typed(err)
				return
			}
			if response.StatusCode == 206 && (response.Range.Start != a.Range.Start || response.Range.End > a.Range.End || response.Range.Empty()) {
				t.Fatalf("asked for %v, got %v", a.Range, response.Range)
			}
			if known && (response.StatusCode != 206 || response.ID != *a.Want) {
				t.Fatalf("accepted %d of %+v", response.StatusCode, response.ID)
			}
			if cut && i == 0 {
				c.Cut(0, 130)
			}
			h2.mu.Lock()
			for _, x := range h2.queue {
				if n := x.held(); n > maxOpen+readFrame || known && n > 100 {
					t.Errorf("%d bytes wait of %v", n, x.request.Range)
				}
			}
			h2.mu.Unlock()
			n, err := io.Copy(io.Discard, response.Body)
			if err != nil {
				typed(err)
				return
			}
			want := response.Range.Len()
			if cut {
				want = min(want, map[int]int64{0: 30, 1: 50}[i])
			}
			if response.Range.End >= 0 && response.Range.Start == a.Range.Start && n != want {
				t.Fatalf("%d bytes for %v, want %d", n, response.Range, want)
			}
		}
		c.Release()
		p.Close()
	})
}
