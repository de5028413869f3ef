package systemtest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// released waits until no resources of any request are left in a proxy that keeps running.
func released(t *testing.T, r *rig) {
	t.Helper()
	returned(t, r, aSecond)
	noneLeft(t, aSecond, transfers...)
}

// returned waits until no transfer runs and all memory is returned.
func returned(t *testing.T, r *rig, within time.Duration) {
	t.Helper()
	defer func() {
		if s := r.d.Status(); t.Failed() {
			t.Logf("granted %d, held %d, transfers %+v", s.Budget.Granted, s.Budget.Held, s.Transfers)
		}
	}()
	until(t, "memory and transfers are released", within, func() bool {
		s := r.d.Status()
		return s.Budget.Granted == 0 && s.Budget.Held == 0 && len(s.Transfers) == 0
	})
}

// aSecond is a second on a machine that is ten times as busy. Connections that are kept stay for longer.
const aSecond = 10 * time.Second

// closed waits until no connection to the origin is open.
func closed(t *testing.T, r *rig) {
	t.Helper()
	until(t, "connections to the origin are closed", aSecond, func() bool {
		n := 0
		for _, p := range []*path{r.wifi, r.lte} {
			p.set(func(p *path) { n += len(p.conns) })
		}
		return n == 0
	})
}

// TestClientLeaves lets clients disconnect: within a second, nothing of their requests is left.
func TestClientLeaves(t *testing.T) {
	cases := []struct {
		name   string
		faults []Fault
		window int64
		read   int64 // bytes read before the client leaves; -1 = it leaves before the head
		header http.Header
	}{
		{"in mid-transfer", []Fault{RateLimit(slow)}, 0, 300_000, nil},
		{"in mid-transfer that began with its own GET", []Fault{RateLimit(slow)}, 0, 300_000, get("Accept-Encoding", "gzip")},
		{"when the window is full", nil, 256 << 10, 100_000, nil},
		{"right after the head", []Fault{RateLimit(slow)}, 0, 0, nil},
		{"while the answer is passed through", []Fault{RateLimit(slow), NoRanges()}, 0, 100_000, nil},
		{"before the head", []Fault{SlowStart(limit)}, 0, -1, nil},
		{"while the answer stalls", []Fault{StallAfter(200_000, nil)}, 0, 150_000, nil},
	}
	for _, c := range cases {
		t.Run("R65 "+c.name, func(t *testing.T) {
			s := New(t, Object{Size: 32 << 20}, c.faults...)
			cfg := settings()
			if c.window > 0 {
				cfg.TransferWindow = 256 << 10
			}
			r := newRig(t, s, cfg, "wifi", "lte")
			if c.read < 0 {
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() {
					defer close(done)
					if resp, err := client(t, r.url).Do(request(ctx, s.URL(), c.header)); err == nil {
						resp.Body.Close()
						t.Error("an answer")
					}
				}()
				until(t, "the origin has the request", limit, func() bool { return len(s.Requests()) > 0 })
				cancel()
				<-done
			} else {
				d := r.open(c.header)
				d.read(c.read)
				if c.window > 0 {
					settled(t, s)
				}
				d.close()
			}
			released(t, r)
			closed(t, r)
		})
	}
}

// settled waits until the origin has sent nothing for a while and returns how many bytes it sent.
func settled(t *testing.T, s *Server) int64 {
	t.Helper()
	last, calm := int64(-1), 0
	until(t, "the origin stops sending", limit, func() bool {
		n := s.Sent(0) + s.Sent(1)
		if calm++; n != last {
			last, calm = n, 0
		}
		return calm > 100
	})
	return last
}

// TestSlowClient checks that fetching stops if the client does not read.
func TestSlowClient(t *testing.T) {
	const size, window = 128 << 20, 1 << 20
	for _, codings := range []string{"", "gzip"} {
		t.Run(fmt.Sprintf("R82 codings %q", codings), func(t *testing.T) {
			s := New(t, Object{Size: size})
			cfg := settings()
			cfg.TransferWindow = window
			r := newRig(t, s, cfg, "wifi", "lte")
			h := http.Header{}
			if codings != "" {
				h.Set("Accept-Encoding", codings)
			}
			d := r.open(h)
			d.read(100_000)
			// The window and the kernel's buffers: at most 4 MiB (tcp_wmem) to send on each of two connections and to the client,
			// and 6 MiB (tcp_rmem) that the client has not read. On the links, the receive buffers are small.
			sent := settled(t, s)
			if sent > window+22<<20 {
				t.Errorf("the origin has sent %d bytes to a client that does not read", sent)
			}
			if st := r.d.Status(); st.Budget.Held > window+512<<10 {
				t.Errorf("%d bytes held with a window of %d", st.Budget.Held, window)
			}
			d.read(20 << 20)
			if now := settled(t, s); now <= sent {
				t.Errorf("nothing was fetched after the client went on")
			}
			if w := wrong(s.Object(), d.got.Bytes(), 0); w != "" {
				t.Error(w)
			}
			d.close()
			released(t, r)
		})
	}
}

// TestBudget runs many transfers in little memory: all end, and together they hold no more than the budget, apart from the block
// that each connection is filling.
func TestBudget(t *testing.T) {
	const clients, budget, blockSize, leastGrant = 20, 4 << 20, 32 << 10, 128 << 10
	s := New(t, Object{Size: 3 << 20}, RateLimit(1<<20))
	cfg := settings()
	cfg.Budget, cfg.TransferWindow = budget, 2<<20
	r := newRig(t, s, cfg, "wifi", "lte")
	var held, granted, most atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			st := r.d.Status()
			held.Store(max(held.Load(), st.Budget.Held))
			granted.Store(max(granted.Load(), st.Budget.Granted))
			sum := int64(0)
			for _, tr := range st.Transfers {
				sum += tr.Held
			}
			most.Store(max(most.Load(), sum))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { whole(t, r.get(nil), s.Object()) })
	}
	all.Wait()
	close(stop)
	<-stopped
	t.Logf("held %d in blocks, %d in bytes, granted %d", held.Load(), most.Load(), granted.Load())
	// A newcomer gets the smallest grant immediately, before the others return theirs.
	if granted.Load() > budget+clients*leastGrant {
		t.Errorf("%d bytes granted of %d", granted.Load(), budget)
	}
	if most.Load() > budget {
		t.Errorf("%d bytes held of %d", most.Load(), budget)
	}
	if held.Load() > budget+clients*2*2*blockSize {
		t.Errorf("%d bytes in blocks of %d", held.Load(), budget)
	}
	released(t, r)
}

// TestReuse checks that transfers reuse the connections of earlier ones. It uses one link: if two share the end of an object, the
// slower one is cut off in the middle of its answer, and chance decides which connections that costs.
func TestReuse(t *testing.T) {
	const downloads = 10
	s := New(t, Object{Size: mid})
	r := newRig(t, s, settings(), "wifi")
	c := client(t, r.url)
	for range downloads {
		whole(t, fetch(c, s.URL(), nil), s.Object())
		released(t, r)
	}
	if n := r.wifi.dialed(); n > 2 { // as many as one download has concurrently
		t.Errorf("%d connections for %d downloads one after the other", n, downloads)
	}
}

// TestNewcomer starts a transfer while another has all the memory. The new one gets an even share as soon as the first one's client
// has read the bytes held beyond that share.
func TestNewcomer(t *testing.T) {
	const budget = 4 << 20
	s := New(t, Object{Size: 64 << 20})
	cfg := settings()
	cfg.Budget, cfg.TransferWindow = budget, budget
	r := newRig(t, s, cfg, "wifi", "lte")
	window := func(i int) int64 {
		if all := r.d.Status().Transfers; i < len(all) {
			return all[i].Window
		}
		return 0
	}
	first := r.open(nil)
	first.read(100_000)
	const own = 400<<10 + budget/8 // maximum that a transfer takes in addition to its window, and that the process takes
	until(t, "the first one has all memory", limit, func() bool { return window(0) >= budget-own })
	settled(t, s)
	next := r.open(nil)
	next.read(100_000)
	settled(t, s)
	if n := window(1); n > budget/2 {
		t.Errorf("the newcomer has a window of %d", n)
	}
	// Both read, since a client that pauses for half a second is taken for a slow one and leaves its share to the other.
	until(t, "the newcomer has an even share", limit, func() bool {
		first.read(64 << 10)
		next.read(64 << 10)
		return window(1) >= budget/2-own
	})
	if g := r.d.Status().Budget.Granted; g > budget {
		t.Errorf("%d bytes are granted", g)
	}
	first.close()
	next.read(16 << 20)
	until(t, "the newcomer has all memory", limit, func() bool {
		next.read(1000)
		return window(0) >= budget-own
	})
	next.close()
	released(t, r)
}

// TestClientsComeAndGo lets clients leave at random moments; nothing of their requests is left afterwards.
func TestClientsComeAndGo(t *testing.T) {
	s := New(t, Object{Size: 4 << 20})
	r := newRig(t, s, settings(), "wifi", "lte")
	var all sync.WaitGroup
	for worker := range 4 {
		rnd := rand.New(rand.NewPCG(1, uint64(worker)))
		all.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rnd.IntN(12_000))*time.Microsecond)
				h := get("Accept-Encoding", "gzip")
				if i%2 == 0 {
					h = nil
				}
				resp, err := client(t, r.url).Do(request(ctx, s.URL(), h))
				if err == nil {
					got, _ := io.ReadAll(io.LimitReader(resp.Body, rnd.Int64N(4<<20)))
					if w := wrong(s.Object(), got, 0); w != "" {
						t.Error(w)
					}
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	released(t, r)
	whole(t, r.get(nil), s.Object())
}

func TestLargeObject(t *testing.T) {
	s := New(t, Object{Size: 20e6 + 7})
	r := newRig(t, s, settings(), "wifi", "lte")
	whole(t, r.get(nil), s.Object())
	released(t, r)
}

// TestThinkingOrigin lets the origin delay each answer: ranges must be long enough to be worth the delay.
func TestThinkingOrigin(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO: thinking and round trips look alike")
	}
	t.Parallel()
	s := New(t, Object{Size: long}, RateLimit(paced), SlowStart(150*time.Millisecond))
	r := newRig(t, s, settings(), "wifi", "lte")
	whole(t, r.get(nil), s.Object())
	if n := len(s.Requests()); n > 40 {
		t.Errorf("%d requests for %d bytes", n, int64(long))
	}
}

// TestSlowFirstByte lets the origin delay the first byte longer than a connection may be silent in mid-transfer: the client waits
// as it would without the proxy.
func TestSlowFirstByte(t *testing.T) {
	for _, links := range [][]string{{"wifi"}, {"wifi", "lte"}} {
		for _, codings := range []string{"", "gzip"} {
			for _, size := range []int64{1000, mid} {
				t.Run(fmt.Sprintf("%v, codings %q, %d bytes", links, codings, size), func(t *testing.T) {
					t.Parallel()
					s := New(t, Object{Size: size}, UntilRequest(2*len(links), SlowStart(4*time.Second)))
					r := newRig(t, s, settings(), links...)
					h := http.Header{}
					if codings != "" {
						h.Set("Accept-Encoding", codings)
					}
					whole(t, r.get(h), s.Object())
					if n := len(s.Requests()); size == 1000 && n > len(links) {
						t.Errorf("%d requests", n)
					}
				})
			}
		}
	}
}

// TestDrain cancels the proxy's context in mid-transfer: the transfer succeeds, new clients are refused, and afterwards nothing is
// left.
func TestDrain(t *testing.T) {
	s := New(t, Object{Size: long / 2}, RateLimit(slow))
	r := newRig(t, s, settings(), "wifi", "lte")
	d := r.open(nil)
	d.read(300_000)
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	until(t, "the proxy listens no more", limit, func() bool {
		c, err := net.Dial("tcp", r.url.Host)
		if err != nil {
			return true
		}
		c.Close()
		return false
	})
	before := r.carried("lte")
	until(t, "the second link goes on", limit, func() bool { return r.carried("lte") > before })
	select {
	case <-stopped:
		t.Fatal("the proxy has ended before its transfer")
	default:
	}
	d.rest(s.Object())
	_, _ = io.Copy(io.Discard, d.resp.Body)
	within(t, "the end of the proxy", func() { <-stopped })
	noneLeft(t, time.Second, "")
}

// TestEveryScheduler serves an object over two links with each scheduler of the product.
func TestEveryScheduler(t *testing.T) {
	for _, name := range schedule.Names() {
		t.Run(name, func(t *testing.T) {
			s := New(t, Object{Size: 3 * mid})
			cfg := settings()
			cfg.Scheduler = name
			r := newRig(t, s, cfg, "wifi", "lte")
			whole(t, fetch(client(t, r.url), s.URL(), nil), s.Object())
			released(t, r)
		})
	}
}
