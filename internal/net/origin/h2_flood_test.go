package origin_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// floodSize is the size of the object that a flooder serves, floodFrame the size of its DATA frames, in bytes.
const (
	floodSize  = 1 << 30
	floodFrame = 16 << 10
)

// flooder is the server's side of an HTTP/2 connection. It sends as much as the flow-control windows allow, over a pipe without
// a buffer: all written bytes have been taken by the client.
type flooder struct {
	*frames
	wire     io.Writer   // bytes that are not frames
	out      io.Writer   // frames
	requests chan uint32 // streams in the order of their requests

	mu      sync.Mutex
	changed sync.Cond
	conn    int64 // window
	initial int64 // SETTINGS_INITIAL_WINDOW_SIZE
	streams map[uint32]int64
	reset   map[uint32]http2.ErrCode
	goAway  []http2.ErrCode
	log     []string         // the client's frames, except WINDOW_UPDATE of the connection
	acking  bool             // SETTINGS are acknowledged
	owed    int              // SETTINGS that were not
	order   sync.Mutex       // DATA under old SETTINGS comes before their acknowledgment
	pong    func(ack func()) // called for each PING; nil ignores them
	held    int64            // bytes of DATA that the client took and nobody has read (see read)
	most    int64            // largest held so far
	err     error            // the connection is broken
}

// flooders is a pool whose origins are flooders. play runs on each connection.
func flooders(t *testing.T, cert tls.Certificate, roots *x509.CertPool, play func(*flooder)) *pool {
	return strangers(t, cert, roots, func(f *flooder) { f.fr.WriteSettings(); play(f) })
}

// strangers are flooders that do not even send SETTINGS.
func strangers(t *testing.T, cert tls.Certificate, roots *x509.CertPool, play func(*flooder)) *pool {
	p := newPool(func(context.Context, link.Link, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveFlood(t, tls.Server(server, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}), play)
		return client, nil
	}, roots)
	t.Cleanup(p.Close)
	return p
}

func serveFlood(t *testing.T, c *tls.Conn, play func(*flooder)) {
	defer c.NetConn().Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	out := &cutting{w: c}
	f := &flooder{
		frames: &frames{t: t, fr: http2.NewFramer(out, c)}, wire: c, out: out, requests: make(chan uint32, 64),
		conn: 65_535, initial: 65_535, streams: map[uint32]int64{}, reset: map[uint32]http2.ErrCode{},
	}
	f.changed.L = &f.mu
	f.fr.AllowIllegalWrites = true
	f.henc = hpack.NewEncoder(&f.buf)
	var both sync.WaitGroup
	both.Go(f.listen)
	play(f)
	both.Wait()
}

// cutting sends each frame in two TLS records, and cuts its header.
type cutting struct {
	w  io.Writer
	mu sync.Mutex
}

func (c *cutting) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, err := c.w.Write(p[:5]); err != nil {
		return n, err
	}
	n, err := c.w.Write(p[5:])
	return 5 + n, err
}

// listen reads the client's frames. It acknowledges SETTINGS and PING only if told to.
func (f *flooder) listen() {
	defer close(f.requests)
	second := http2.NewFramer(f.out, nil)
	for {
		frame, err := f.fr.ReadFrame()
		var reply func()
		f.order.Lock()
		f.mu.Lock()
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
				for id := range f.streams {
					f.streams[id] += int64(v) - f.initial
				}
				f.initial = int64(v)
				f.log = append(f.log, fmt.Sprint("SETTINGS ", v))
			}
			switch {
			case frame.IsAck():
			case f.acking:
				reply = func() { second.WriteSettingsAck() }
			default:
				f.owed++
			}
		case *http2.HeadersFrame:
			f.streams[frame.StreamID] = f.initial
			f.log = append(f.log, fmt.Sprint("HEADERS ", frame.StreamID))
			f.requests <- frame.StreamID
		case *http2.WindowUpdateFrame:
			if frame.StreamID != 0 {
				f.streams[frame.StreamID] += int64(frame.Increment)
				f.log = append(f.log, fmt.Sprint("WINDOW_UPDATE ", frame.StreamID))
				break
			}
			f.conn += int64(frame.Increment)
		case *http2.RSTStreamFrame:
			f.reset[frame.StreamID] = frame.ErrCode
			f.log = append(f.log, fmt.Sprint("RST_STREAM ", frame.StreamID, " ", frame.ErrCode))
		case *http2.GoAwayFrame:
			f.goAway = append(f.goAway, frame.ErrCode)
		case *http2.PingFrame:
			if frame.IsAck() {
				f.log = append(f.log, "PING ACK")
				break
			}
			f.log = append(f.log, "PING")
			if data := frame.Data; f.pong != nil {
				f.pong(func() { http2.NewFramer(f.out, nil).WritePing(true, data) })
			}
		}
		for _, n := range f.streams {
			if n > math.MaxInt32 {
				f.t.Errorf("a window of %d", n)
			}
		}
		f.err = err
		f.changed.Broadcast()
		f.mu.Unlock()
		if reply != nil {
			reply()
		}
		f.order.Unlock()
		if err != nil {
			return
		}
	}
}

// rest sends n bytes of DATA as far and as soon as the windows allow, until the client resets the stream. It returns the number of
// bytes sent.
func (f *flooder) rest(id uint32, n int64) (sent int64) {
	for sent < n {
		f.mu.Lock()
		for f.err == nil && !f.wasReset(id) && (f.conn <= 0 || f.streams[id] <= 0) {
			f.changed.Wait()
		}
		over := f.err != nil || f.wasReset(id)
		f.mu.Unlock()
		if over {
			return sent
		}
		f.order.Lock()
		f.mu.Lock()
		k := max(0, min(n-sent, floodFrame, f.conn, f.streams[id]))
		f.conn -= k
		f.streams[id] -= k
		f.mu.Unlock()
		if k > 0 {
			f.fr.WriteData(id, false, make([]byte, k))
		}
		f.order.Unlock()
		sent += k
	}
	f.end(id)
	return sent
}

// said returns the client's frames since the last call.
func (f *flooder) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.log
	f.log = nil
	return all
}

// pour sends n bytes of DATA on a stream as the windows open, and reports whether the connection took them all.
func (f *flooder) pour(id uint32, n int64) bool {
	for n > 0 {
		k := min(n, floodFrame)
		f.mu.Lock()
		for f.err == nil && (f.conn < k || f.streams[id] < k) {
			f.changed.Wait()
		}
		broken := f.err != nil
		f.conn -= k
		f.streams[id] -= k
		f.mu.Unlock()
		if broken || f.fr.WriteData(id, false, make([]byte, k)) != nil {
			return false
		}
		f.mu.Lock()
		f.held += k
		f.most = max(f.most, f.held)
		f.mu.Unlock()
		n -= k
	}
	return true
}

// read records that n bytes were read.
func (f *flooder) read(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held -= n
}

// take returns how much the client holds now, and the most that it ever held.
func (f *flooder) take() (held, most int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held, f.most
}

// window returns how many bytes the client lets the connection carry now.
func (f *flooder) window() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn
}

// untilReset waits for the client to cancel a stream.
func (f *flooder) untilReset(id uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.err == nil && !f.wasReset(id) {
		f.changed.Wait()
	}
}

// wasReset reports whether the client has cancelled a stream. f.mu is held.
func (f *flooder) wasReset(id uint32) bool {
	_, ok := f.reset[id]
	return ok
}

// part answers a request for r with a 206.
func (f *flooder) part(id uint32, r segment.Range) {
	f.answer(id, "206", "content-range", fmt.Sprintf("bytes %d-%d/%d", r.Start, r.End-1, floodSize))
}

func (f *flooder) answer(id uint32, status string, more ...string) {
	block := f.fields(append([]string{":status", status, "etag", h2Tag}, more...)...)
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
}

func (f *flooder) end(id uint32) { f.fr.WriteData(id, true, nil) }

// floodAsk asks for the n-th range of size bytes.
func floodAsk(n, size int64) engine.RangeRequest {
	return engine.RangeRequest{
		Target: scriptTarget, Range: segment.Range{Start: n * size, End: (n + 1) * size}, IfRange: h2Tag,
		Want: &engine.Identity{Total: floodSize, Validator: h2Tag, ETag: h2Tag},
	}
}

// certificate returns a certificate for the host of scriptTarget, and the roots that verify it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates[0], roots
}

// Whatever the origin sends, a connection holds little more unread content than was requested.
func TestH2Floods(t *testing.T) {
	const size, slack, many = 64 << 10, 128 << 10, 50
	part := func(n int64) segment.Range { return segment.Range{Start: n * size, End: (n + 1) * size} }
	var manyAsks []engine.RangeRequest
	for n := range int64(1 + many) {
		manyAsks = append(manyAsks, floodAsk(n, size))
	}
	tests := []struct {
		name    string
		asks    []engine.RangeRequest
		first   bool // the first answer is read to its end before the others are requested
		play    func(f *flooder)
		bound   int64
		least   int64         // bytes that are taken
		outcome fault.Outcome // of the first answer that fails; Complete: the connection lives
	}{
		{
			"R191 more than was asked for",
			[]engine.RangeRequest{floodAsk(0, size)},
			false,
			func(f *flooder) {
				id := <-f.requests
				f.part(id, part(0))
				f.pour(id, 4<<20)
			}, size, size, fault.BadRange,
		},
		{
			"R191 more than was asked for, on a stream that waits",
			[]engine.RangeRequest{floodAsk(0, size), floodAsk(1, size), floodAsk(2, size)},
			true,
			func(f *flooder) {
				f.part(<-f.requests, part(0))
				f.pour(1, size)
				f.end(1)
				f.part(<-f.requests, part(1))
				id := <-f.requests
				f.part(id, part(2))
				f.pour(id, 4<<20)
			}, 2 * size, size, fault.BadRange,
		},
		{
			"R191 more than was asked for, on many streams", manyAsks, true,
			func(f *flooder) {
				f.part(<-f.requests, part(0))
				f.pour(1, size)
				f.end(1)
				var all []uint32
				for n := range int64(many) {
					id := <-f.requests
					f.part(id, part(n+1))
					all = append(all, id)
				}
				for range 4 << 20 / floodFrame {
					for _, id := range all {
						if !f.pour(id, floodFrame) {
							return
						}
					}
				}
			}, many * size, many * size, fault.BadRange,
		},
		{
			"R191 a whole object in place of a range",
			[]engine.RangeRequest{{Target: scriptTarget, Range: part(0)}},
			false,
			func(f *flooder) {
				id := <-f.requests
				f.answer(id, "200", "content-length", strconv.Itoa(floodSize))
				f.pour(id, 4<<20)
			}, size, size, fault.Complete,
		},
		{
			"R191 a length that nobody knows",
			[]engine.RangeRequest{{Target: scriptTarget}},
			false,
			func(f *flooder) {
				id := <-f.requests
				f.answer(id, "200")
				f.pour(id, 4<<20)
			}, 128 << 10, 128 << 10, fault.Complete,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cert, roots := certificate(t)
			synctest.Test(t, func(t *testing.T) {
				var f *flooder
				p := flooders(t, cert, roots, func(g *flooder) { f = g; tt.play(g) })
				c, err := p.Open(t.Context(), links[0], scriptTarget)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				for i, a := range tt.asks {
					if err := c.Send(a); err != nil {
						t.Fatal(err)
					}
					if i > 0 || !tt.first {
						continue
					}
					response, err := c.Next()
					if err != nil {
						t.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, response.Body); n != size || err != nil {
						t.Fatal(n, err)
					}
					f.read(size)
				}
				synctest.Wait()
				held, most := f.take()
				if most > tt.bound+slack {
					t.Fatalf("%d bytes were taken of %d asked for", most, tt.bound)
				}
				if most < tt.least {
					t.Errorf("only %d bytes were taken of %d asked for", most, tt.least)
				}
				t.Logf("%d bytes held, %d at most", held, most)
				response, err := c.Next()
				if err == nil { // the origin can send the rest now
					_, err = io.ReadFull(response.Body, make([]byte, 4<<20))
				}
				switch {
				case tt.outcome == fault.Complete && err != nil, tt.outcome != fault.Complete && err == nil:
					t.Error(err)
				case err != nil && outcome(t, err) != tt.outcome:
					t.Errorf("%v, want %v: %v", outcome(t, err), tt.outcome, err)
				}
			})
		})
	}
}

// An origin that sends only the requested bytes keeps its connection, whatever happens to its answers.
func TestH2NoFloods(t *testing.T) {
	const size = 4 << 20
	part := func(n int64) segment.Range { return segment.Range{Start: n * size, End: (n + 1) * size} }
	tests := []struct {
		name    string
		play    func(f *flooder)                           // answers two requests, the second with all of its range
		read    func(response *engine.RangeResponse) error // of the first answer
		outcome fault.Outcome                              // of the first head; Complete: it is fine
	}{
		{
			"R191 bytes of a cancelled answer that were under way", func(f *flooder) {
				one := <-f.requests
				f.part(one, part(0))
				f.pour(one, 1<<20)
				f.untilReset(one)
				f.pour(one, 2<<20)
			},
			func(response *engine.RangeResponse) error {
				_, err := io.ReadFull(response.Body, make([]byte, 1000))
				return errors.Join(err, response.Body.Close())
			}, fault.Complete,
		},
		{
			"R191 the whole object, before the client can cancel it", func(f *flooder) {
				one := <-f.requests
				f.answer(one, "200", "content-length", strconv.Itoa(floodSize))
				f.pour(one, 3<<20)
				f.untilReset(one)
				f.pour(one, 1<<20)
			}, nil, fault.NoRange,
		},
		{
			"R191 padding", func(f *flooder) {
				one := <-f.requests
				f.part(one, part(0))
				for range size >> 10 {
					f.fr.WriteDataPadded(one, false, make([]byte, 1<<10), make([]byte, 255))
				}
				f.end(one)
			},
			func(response *engine.RangeResponse) error { _, err := io.Copy(io.Discard, response.Body); return err }, fault.Complete,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cert, roots := certificate(t)
			synctest.Test(t, func(t *testing.T) {
				var f *flooder
				p := flooders(t, cert, roots, func(g *flooder) {
					f = g
					tt.play(f)
					two := <-f.requests
					f.part(two, part(1))
					f.pour(two, size)
					f.end(two)
				})
				c, err := p.Open(t.Context(), links[0], scriptTarget)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				for n := range int64(2) {
					if err := c.Send(floodAsk(n, size)); err != nil {
						t.Fatal(err)
					}
				}
				response, err := c.Next()
				switch {
				case tt.outcome != fault.Complete:
					if outcome(t, err) != tt.outcome {
						t.Errorf("%v, want %v", err, tt.outcome)
					}
				case err != nil:
					t.Fatal(err)
				default:
					if err := tt.read(response); err != nil {
						t.Fatal(err)
					}
				}
				response, err = c.Next()
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, response.Body); n != size || err != nil {
					t.Error(n, err)
				}
				synctest.Wait()
				if n := f.window(); n < 32<<10 {
					t.Errorf("nothing is left to read, and the window of the connection is %d bytes", n)
				}
				c.Release()
			})
		})
	}
}

// An answer that may be of any length must not fill the connection while the reader waits for the one before it.
func TestH2EndlessBehind(t *testing.T) {
	const size = 64 << 10
	rest := floodAsk(1, size)
	rest.Range.End = byterange.Open
	tests := []struct {
		name string
		ask  engine.RangeRequest
	}{
		{"R191 a range without an end", rest},
		{"R191 a whole object", engine.RangeRequest{Target: scriptTarget}},
		{"R191 a range of any version", engine.RangeRequest{Target: scriptTarget, Range: segment.Range{Start: size, End: 2 * size}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cert, roots := certificate(t)
			synctest.Test(t, func(t *testing.T) {
				p := flooders(t, cert, roots, func(f *flooder) {
					f.part(<-f.requests, segment.Range{End: size})
					f.pour(1, size)
					f.end(1)
					one := <-f.requests
					answer := func(two uint32) {
						if tt.ask.Range.End == byterange.Open {
							f.part(two, segment.Range{Start: size, End: floodSize})
						} else {
							f.answer(two, "200", "content-length", strconv.Itoa(floodSize))
						}
						f.pour(two, 1<<20)
					}
					late := time.After(time.Second)
					select {
					case two := <-f.requests: // the origin may answer it first
						answer(two)
						late = nil
					case <-late:
					}
					f.part(one, segment.Range{End: size})
					f.pour(one, size)
					f.end(one)
					if late != nil {
						answer(<-f.requests)
					}
				})
				c, err := p.Open(t.Context(), links[0], scriptTarget)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				send := func(asks ...engine.RangeRequest) {
					for _, a := range asks {
						if err := c.Send(a); err != nil {
							t.Fatal(err)
						}
					}
				}
				read := func(n int64) {
					response, err := c.Next()
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.CopyN(io.Discard, response.Body, n)
					if err == nil && n == size {
						_, err = io.Copy(io.Discard, response.Body)
					}
					if got != n || err != nil {
						t.Fatalf("%d bytes of %d: %v", got, n, err)
					}
				}
				send(floodAsk(0, size))
				read(size)
				send(floodAsk(0, size), tt.ask)
				read(size)
				read(1 << 20)
			})
		})
	}
}

// The body of an unwanted answer may arrive before its head is judged. On one processor the reader takes everything that the kernel
// has before anything else runs.
func TestH2UnjudgedBody(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	t.Run("R191 a body that comes before its head is judged", func(t *testing.T) {
		c := scripted(t, func(f *frames) {
			one := f.asked()
			block := f.fields(":status", "200", "etag", h2Tag, "content-length", "1000000")
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: one, BlockFragment: block, EndHeaders: true})
			for range 100 {
				f.data(one, 10_000, false)
			}
			two := f.asked()
			f.head(two, 1)
			f.data(two, 100, true)
		})
		for n := range int64(2) {
			if err := c.Send(scriptAsk(n)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Next(); outcome(t, err) != fault.Changed { // another size
			t.Error(err)
		}
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(response.Body); len(b) != 100 || err != nil {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}
