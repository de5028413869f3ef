package origin_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

const kB = 1 << 10

// cutter is a connection to a flooder that answers each request as far as the windows allow.
type cutter struct {
	*flooder
	t    *testing.T
	pool *pool
	c    engine.Conn
	gate chan struct{} // for hold

	// mu guards these.
	asks []segment.Range
	sent map[uint32]int64 // bytes by stream
}

// ranges makes a cutter. hold is called before an answer, between its head and its body, and may wait.
func ranges(t *testing.T, p func(play func(*flooder)) *pool, hold func(*cutter, uint32)) *cutter {
	k := &cutter{t: t, gate: make(chan struct{}), sent: map[uint32]int64{}}
	started := make(chan struct{})
	k.pool = p(func(f *flooder) {
		k.flooder = f
		f.mu.Lock()
		f.acking = true
		owed := f.owed
		f.mu.Unlock()
		for range owed {
			f.fr.WriteSettingsAck()
		}
		close(started)
		for id := range f.requests {
			f.mu.Lock()
			r := k.asks[id/2]
			f.mu.Unlock()
			if hold != nil {
				hold(k, id)
			}
			f.part(id, r)
			n := f.rest(id, r.Len())
			f.mu.Lock()
			k.sent[id] = n
			f.mu.Unlock()
		}
	})
	k.open()
	<-started
	return k
}

// open opens the connection, or takes it from the pool.
func (k *cutter) open() {
	k.t.Helper()
	c, err := k.pool.Open(k.t.Context(), links[0], scriptTarget)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.Close)
	k.c = c
}

// ask asks for a range; its number is that of the request.
func (k *cutter) ask(r segment.Range) {
	k.t.Helper()
	a := floodAsk(0, 1)
	a.Range, a.ID = r, uint32(len(k.asks))
	k.mu.Lock()
	k.asks = append(k.asks, r)
	k.mu.Unlock()
	if err := k.c.Send(a); err != nil {
		k.t.Fatal(err)
	}
}

func (k *cutter) next() io.ReadCloser {
	k.t.Helper()
	response, err := k.c.Next()
	if err != nil {
		k.t.Fatal(err)
	}
	return response.Body
}

// reads reads a body to its end, or n bytes of it.
func (k *cutter) reads(b io.Reader, n int64, end bool) {
	k.t.Helper()
	got, err := io.CopyN(io.Discard, b, n)
	if err == nil && end {
		var more int64
		more, err = io.Copy(io.Discard, b)
		got += more
	}
	if got != n || err != nil {
		k.t.Fatalf("%d bytes of %d, %v", got, n, err)
	}
}

// of returns how many bytes of a stream were sent.
func (k *cutter) of(id uint32) int64 {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent[id]
}

// cuttingTest runs a test of a cutter in virtual time.
func cuttingTest(t *testing.T, hold func(*cutter, uint32), do func(k *cutter)) {
	cert, roots := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		do(ranges(t, func(play func(*flooder)) *pool { return flooders(t, cert, roots, play) }, hold))
	})
}

// TestH2Cut: R125: an answer that is cut ends at the cut. The origin sends nothing beyond it if it learns of it in time: its window
// for the stream shrinks, those of the others stay, and the stream is reset at its end. The connection stays usable.
func TestH2Cut(t *testing.T) {
	t.Run("R125 in time", func(t *testing.T) {
		first := true
		cuttingTest(t, func(k *cutter, id uint32) {
			if first {
				first = false
				<-k.gate
			}
		}, func(k *cutter) {
			k.ask(segment.Range{End: 1000 * kB})
			synctest.Wait()
			k.ask(segment.Range{Start: 2000 * kB, End: 3000 * kB})
			synctest.Wait()
			k.said()
			k.c.Cut(0, 400*kB)
			synctest.Wait()
			want := []string{fmt.Sprint("SETTINGS ", 400*kB), "WINDOW_UPDATE 3"}
			if got := k.said(); !slices.Equal(got, want) {
				t.Errorf("the client sends %q, want %q", got, want)
			}
			close(k.gate)
			k.reads(k.next(), 400*kB, true)
			if n := k.of(1); n != 400*kB {
				t.Errorf("%d bytes were sent", n)
			}
			want = []string{"RST_STREAM 1 CANCEL", fmt.Sprint("SETTINGS ", 4<<20)}
			if got := slices.DeleteFunc(k.said(), func(s string) bool { return s == "PING" }); !slices.Equal(got, want) {
				t.Errorf("the client sends %q, want %q", got, want)
			}
			k.reads(k.next(), 1000*kB, true)
			k.ask(segment.Range{Start: 10, End: 20})
			k.reads(k.next(), 10, true)
		})
	})
	t.Run("R125 the next request leaves behind the cut", func(t *testing.T) {
		cuttingTest(t, func(k *cutter, _ uint32) { <-k.gate }, func(k *cutter) {
			k.ask(segment.Range{End: 1000 * kB})
			synctest.Wait()
			k.said()
			k.c.Cut(0, 400*kB)
			k.ask(segment.Range{Start: 2000 * kB, End: 3000 * kB})
			synctest.Wait()
			want := []string{fmt.Sprint("SETTINGS ", 400*kB), "HEADERS 3", "WINDOW_UPDATE 3"}
			if got := k.said(); !slices.Equal(got, want) {
				t.Errorf("the client sends %q, want %q", got, want)
			}
			close(k.gate)
			k.reads(k.next(), 400*kB, true)
			k.reads(k.next(), 1000*kB, true)
			if n := k.of(1); n != 400*kB {
				t.Errorf("%d bytes were sent", n)
			}
		})
	})
	t.Run("R125 after some of it was read", func(t *testing.T) {
		cuttingTest(t, nil, func(k *cutter) {
			k.ask(segment.Range{End: 6 << 20}) // longer than the window of a stream
			b := k.next()
			k.reads(b, 1500*kB, false)
			synctest.Wait()
			k.c.Cut(0, 5<<20)
			k.reads(b, 5<<20-1500*kB, true)
			if n := k.of(1); n < 5<<20 || n > 5<<20+1500*kB {
				t.Errorf("%d bytes were sent", n)
			}
		})
	})
	t.Run("R125 too late", func(t *testing.T) {
		cuttingTest(t, nil, func(k *cutter) {
			k.ask(segment.Range{End: 1000 * kB})
			b := k.next()
			k.reads(b, 500*kB, false)
			k.of(1) // all of it has arrived
			k.said()
			k.c.Cut(0, 400*kB)
			k.reads(b, 0, true)
			if got := k.said(); len(got) > 0 {
				t.Errorf("the client sends %q", got)
			}
			k.ask(segment.Range{Start: 10, End: 20})
			k.reads(k.next(), 10, true)
		})
	})
	t.Run("R125 before its head", func(t *testing.T) {
		cuttingTest(t, func(k *cutter, id uint32) { <-k.gate }, func(k *cutter) {
			k.ask(segment.Range{Start: 100, End: 1000 * kB})
			k.c.Cut(0, 100)
			synctest.Wait()
			close(k.gate)
			k.reads(k.next(), 0, true)
			if n := k.of(1); n != 0 {
				t.Errorf("%d bytes were sent", n)
			}
			k.ask(segment.Range{Start: 10, End: 20})
			k.reads(k.next(), 10, true)
		})
	})
	t.Run("R125 before its request can leave", func(t *testing.T) {
		cuttingTest(t, func(_ *cutter, id uint32) {
			if id > 1 {
				time.Sleep(time.Second)
			}
		}, func(k *cutter) {
			k.ask(segment.Range{End: 100})
			k.reads(k.next(), 100, true)
			for range 4 { // 8 MiB may wait to be read
				k.ask(segment.Range{End: 4 << 20})
			}
			synctest.Wait()
			k.c.Cut(4, 100*kB)
			for range 3 {
				k.reads(k.next(), 4<<20, true)
			}
			k.reads(k.next(), 100*kB, true)
			if n := k.of(9); n != 100*kB {
				t.Errorf("%d bytes were sent", n)
			}
		})
	})
	t.Run("R125 no such answer, one that has ended, and an end beyond its own", func(t *testing.T) {
		cuttingTest(t, nil, func(k *cutter) {
			k.ask(segment.Range{End: 100})
			k.reads(k.next(), 100, true)
			k.ask(segment.Range{End: 1000})
			k.c.Cut(0, 50)
			k.c.Cut(7, 50)
			k.c.Cut(1, 1000)
			k.reads(k.next(), 1000, true)
			for _, s := range k.said() {
				if s != "PING" && s != "HEADERS 1" && s != "HEADERS 3" && s != fmt.Sprint("SETTINGS ", 4<<20) {
					t.Errorf("the client sends %s", s)
				}
			}
		})
	})
	t.Run("R125 a reader that waits", func(t *testing.T) {
		cuttingTest(t, func(k *cutter, id uint32) {
			if id == 3 {
				<-k.gate
			}
		}, func(k *cutter) {
			k.ask(segment.Range{End: 1})
			k.reads(k.next(), 1, true)
			k.ask(segment.Range{End: 1000 * kB})
			done := make(chan struct{})
			go func() { defer close(done); k.reads(k.next(), 0, true) }()
			synctest.Wait()
			k.c.Cut(1, 0)
			synctest.Wait()
			close(k.gate)
			<-done
		})
	})
	t.Run("R125 another owner's answer", func(t *testing.T) {
		cuttingTest(t, nil, func(k *cutter) {
			before := k.c
			before.Release()
			k.open()
			k.ask(segment.Range{End: 1000})
			if before.Cut(0, 50) {
				t.Error("cut by who has given the connection back")
			}
			k.reads(k.next(), 1000, true)
		})
	})
	t.Run("R125 closed meanwhile", func(t *testing.T) {
		cuttingTest(t, func(k *cutter, id uint32) { <-k.gate }, func(k *cutter) {
			k.ask(segment.Range{End: 1000 * kB})
			k.c.Cut(0, 400*kB)
			k.c.Close()
			k.c.Cut(0, 300*kB)
			close(k.gate)
			if _, err := k.c.Next(); outcome(t, err) != fault.Canceled {
				t.Error(err)
			}
		})
	})
}

// TestH2ManyCuts: a thousand cuts at any moment leave nothing behind: no goroutine, no stream, and no window that is too small or
// too large. The connection is reused afterwards.
func TestH2ManyCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cuttingTest(t, func(k *cutter, _ uint32) { time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond) }, func(k *cutter) {
		goroutines := 0
		draw := rand.New(rand.NewPCG(3, 4))
		for i := range 1000 {
			r := segment.Range{Start: int64(draw.IntN(kB)), End: 2 * kB}
			r.End = r.Start + 1 + int64(draw.IntN(300*kB))
			k.ask(r)
			id, end := uint32(len(k.asks)-1), r.Start+int64(draw.IntN(400*kB))
			behind := draw.IntN(2) == 0
			if behind {
				k.ask(segment.Range{Start: 5, End: 5 + 50*kB})
			}
			whole := min(r.Len(), end-r.Start)
			switch draw.IntN(3) {
			case 0:
				k.c.Cut(id, end)
				k.reads(k.next(), whole, true)
			case 1:
				b := k.next()
				k.reads(b, whole/2, false)
				k.c.Cut(id, end)
				k.reads(b, whole-whole/2, true)
			case 2: // by another goroutine, during a read
				b := k.next()
				done := make(chan struct{})
				go func() { defer close(done); time.Sleep(time.Millisecond); k.c.Cut(id, end) }()
				n, err := io.Copy(io.Discard, b)
				if err != nil || n < whole || n > r.Len() {
					t.Fatalf("%d bytes, %v", n, err)
				}
				<-done
			}
			if behind {
				k.reads(k.next(), 50*kB, true)
			}
			if draw.IntN(2) == 0 {
				time.Sleep(time.Minute) // long enough that another window may be shrunk
			}
			synctest.Wait()
			if i == 10 {
				goroutines = runtime.NumGoroutine()
			}
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d after a few cuts", n, goroutines)
		}
		k.mu.Lock()
		if k.initial != 4<<20 || k.conn < 32*kB || k.conn > 8<<20 {
			t.Errorf("SETTINGS_INITIAL_WINDOW_SIZE is %d, the window of the connection %d", k.initial, k.conn)
		}
		k.mu.Unlock()
		k.c.Release()
	})
}

// TestH2Delay: K20: PING measures how long an answer takes now, about ten times a second while bytes arrive.
func TestH2Delay(t *testing.T) {
	cert, roots := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		var pings, late atomic.Int64 // how many, and how long they take
		p := flooders(t, cert, roots, func(f *flooder) {
			f.mu.Lock()
			f.pong = func(ack func()) {
				pings.Add(1)
				time.AfterFunc(time.Duration(late.Load()), ack)
			}
			f.mu.Unlock()
			for id := range f.requests {
				f.part(id, segment.Range{End: 1000 * kB})
				for range 1000 { // a second
					f.pour(id, kB)
					time.Sleep(time.Millisecond)
				}
				f.end(id)
			}
		})
		c, err := p.Open(t.Context(), links[0], scriptTarget)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		delay := func() time.Duration { p, _ := c.Sample(); return p.Delay }
		if d := delay(); d != 0 {
			t.Errorf("%v before anything was asked", d)
		}
		for _, took := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond} {
			pings.Store(0)
			late.Store(int64(took))
			if err := c.Send(floodAsk(0, 1000*kB)); err != nil {
				t.Fatal(err)
			}
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			var seen []time.Duration
			for buf := make([]byte, kB); err == nil; {
				if _, err = response.Body.Read(buf); err == nil {
					if d := delay(); d != 0 {
						seen = append(seen, d)
					}
				}
			}
			if !errors.Is(err, io.EOF) || len(seen) == 0 || seen[len(seen)-1] != took && took < 100*time.Millisecond {
				t.Errorf("%v, %v", err, seen)
			}
			if slices.Max(seen) != took {
				t.Errorf("measured %v at most, want %v", slices.Max(seen), took)
			}
			growing := slices.ContainsFunc(seen, func(d time.Duration) bool { return d > 100*time.Millisecond && d < took })
			if growing != (took > 100*time.Millisecond) {
				t.Errorf("a PING under way that is late already: %v, of %v", growing, took)
			}
			if n, want := pings.Load(), int64(time.Second/max(took, 100*time.Millisecond)); n < want-1 || n > want+1 {
				t.Errorf("%d PINGs, want %d", n, want)
			}
			time.Sleep(time.Second)
			delay()
			pings.Store(0)
			time.Sleep(time.Second)
			if d, n := delay(), pings.Load(); d != 0 || n > 0 {
				t.Errorf("%v and %d PINGs while nothing is under way", d, n)
			}
		}
	})
}

// TestH2Pace: R126: Apache Traffic Server ends a connection that brings more than 60 PING or 14 SETTINGS a minute, so fewer are
// sent, however many answers are cut. An origin that asks for calm gets none.
func TestH2Pace(t *testing.T) {
	serve := func(f *flooder, do func(id uint32)) {
		f.mu.Lock()
		f.acking = true
		f.pong = func(ack func()) { go ack() }
		f.mu.Unlock()
		for id := range f.requests {
			do(id)
		}
	}
	open := func(t *testing.T, p *pool) engine.Conn {
		t.Helper()
		c, err := p.Open(t.Context(), links[0], scriptTarget)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(); time.Sleep(time.Second) }) // the origin sleeps at most as long
		return c
	}
	ask := func(t *testing.T, c engine.Conn, id uint32) (io.Reader, error) {
		t.Helper()
		a := floodAsk(0, 1000*kB)
		a.ID = id
		if err := c.Send(a); err != nil {
			t.Fatal(err)
		}
		response, err := c.Next()
		if err != nil {
			return nil, err
		}
		return response.Body, nil
	}
	count := func(all []string, prefix string) (n int) {
		for _, s := range all {
			if strings.HasPrefix(s, prefix) {
				n++
			}
		}
		return n
	}
	t.Run("R126 PING and SETTINGS a minute", func(t *testing.T) {
		cert, roots := certificate(t)
		synctest.Test(t, func(t *testing.T) {
			var f *flooder
			p := flooders(t, cert, roots, func(g *flooder) {
				f = g
				serve(f, func(id uint32) {
					f.part(id, segment.Range{End: 1000 * kB})
					for range 100 { // 5 s
						if f.drip(id, kB) {
							return
						}
						time.Sleep(50 * time.Millisecond)
					}
				})
			})
			c := open(t, p)
			var late []int // PINGs by the minute
			for minute := range 3 {
				settings := 0
				pings := 0
				for i := range 12 {
					id := uint32(12*minute + i)
					b, err := ask(t, c, id)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.CopyN(io.Discard, b, 50*kB); err != nil {
						t.Fatal(err)
					}
					c.Cut(id, 90*kB)
					if n, err := io.Copy(io.Discard, b); n != 40*kB || err != nil {
						t.Fatal(n, err)
					}
					synctest.Wait()
					said := f.said()
					settings += count(said, "SETTINGS")
					pings += count(said, "PING")
				}
				if late = append(late, pings); pings > 60 || settings > 12 {
					t.Errorf("minute %d: %d PING, %d SETTINGS", minute, pings, settings)
				}
				if pings < 15 || settings < 4 {
					t.Errorf("minute %d: %d PING, %d SETTINGS only", minute, pings, settings)
				}
			}
			t.Logf("PINGs by the minute: %v", late)
		})
	})
	for name, complain := range map[string]func(f *flooder, id uint32){
		"GOAWAY":     func(f *flooder, id uint32) { f.fr.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, nil) },
		"RST_STREAM": func(f *flooder, id uint32) { f.fr.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm) },
	} {
		t.Run("R126 calm asked for by "+name, func(t *testing.T) {
			cert, roots := certificate(t)
			synctest.Test(t, func(t *testing.T) {
				var f *flooder
				first := true
				p := flooders(t, cert, roots, func(g *flooder) {
					f = g
					serve(f, func(id uint32) {
						if first {
							first = false
							complain(f, id)
							return
						}
						f.part(id, segment.Range{End: 1000 * kB})
						for !f.drip(id, kB) {
							time.Sleep(20 * time.Millisecond)
						}
					})
				})
				c := open(t, p)
				if err := c.Send(floodAsk(0, 1000*kB)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				c.Close()
				c = open(t, p)
				b, err := ask(t, c, 7)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.CopyN(io.Discard, b, 20*kB); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				f.said()
				c.Cut(7, 40*kB)
				if n, err := io.Copy(io.Discard, b); n != 20*kB || err != nil {
					t.Fatal(n, err)
				}
				synctest.Wait()
				if said := f.said(); !slices.Equal(said, []string{"RST_STREAM 1 CANCEL"}) {
					t.Errorf("the client sends %q", said)
				}
			})
		})
	}
}

// TestH2BeforeSettings: before an origin's SETTINGS arrive its limits are unknown, so it is asked for one stream.
func TestH2BeforeSettings(t *testing.T) {
	cert, roots := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		p := strangers(t, cert, roots, func(f *flooder) {
			one := <-f.requests
			select {
			case <-f.requests:
				t.Error("two streams")
			case <-time.After(time.Second):
			}
			f.fr.WriteSettings()
			for i, id := range []uint32{one, <-f.requests} {
				f.part(id, segment.Range{Start: int64(i) * kB, End: int64(i+1) * kB})
				f.pour(id, kB)
				f.end(id)
			}
		})
		c, err := p.Open(t.Context(), links[0], scriptTarget)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		for n := range int64(2) {
			if err := c.Send(floodAsk(n, kB)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, response.Body); n != kB || err != nil {
				t.Fatal(n, err)
			}
		}
	})
}

// drip sends n bytes of DATA if the windows allow, and reports whether the client has reset the stream or the connection is gone.
func (f *flooder) drip(id uint32, n int64) (over bool) {
	f.mu.Lock()
	over = f.err != nil || f.wasReset(id)
	fits := f.conn >= n && f.streams[id] >= n
	if fits && !over {
		f.conn -= n
		f.streams[id] -= n
	}
	f.mu.Unlock()
	if fits && !over {
		f.fr.WriteData(id, false, make([]byte, n))
	}
	return over
}
