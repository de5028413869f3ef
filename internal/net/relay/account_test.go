package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

func testAccount(t *testing.T, l Limits) *account {
	return newAccount(filepath.Join(t.TempDir(), "key.json"), l, slog.New(slog.DiscardHandler))
}

func refusedFor(err error, cause uint64) bool {
	e, ok := errors.AsType[*ResetError](err)
	return ok && e.Cause == cause
}

// TestMonth: no byte passes beyond the limit, however many are reserved at once; a restart forgets nothing; the limit applies
// to one month.
func TestMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = lease + 100_000
		a := testAccount(t, Limits{Month: limit})
		var flows sync.WaitGroup
		var mu sync.Mutex
		passed := 0
		for i := range 5 {
			flows.Go(func() {
				for n := 1 + 1000*i; ; n = min(n+1, copyBuffer) {
					if err := a.reserve(t.Context(), n); err != nil {
						if !refusedFor(err, lanes.CauseMonth) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					passed += n
					mu.Unlock()
				}
			})
		}
		flows.Wait()
		if passed > limit || passed < limit-copyBuffer {
			t.Errorf("%d bytes passed of %d", passed, limit)
		}
		if err := a.enter(time.Now()); !refusedFor(err, lanes.CauseMonth) {
			t.Errorf("a new flow: %v", err)
		}

		// A crash: lent bytes count. An orderly end gives them back.
		b := newAccount(a.path, Limits{Month: limit}, a.log)
		if err := b.reserve(t.Context(), copyBuffer); !refusedFor(err, lanes.CauseMonth) {
			t.Errorf("after a crash: %v", err)
		}
		b.set(Limits{Month: limit + 2*lease})
		if err := b.reserve(t.Context(), 1000); err != nil {
			t.Errorf("with a higher limit: %v", err)
		}
		b.close()
		var u usage
		if err := load(a.path, &u); err != nil || u.Bytes > limit+1000 {
			t.Errorf("%+v, %v", u, err)
		}

		time.Sleep(32 * 24 * time.Hour)
		if err := a.enter(time.Now()); err != nil {
			t.Errorf("next month: %v", err)
		}
		if err := a.reserve(t.Context(), 1); err != nil {
			t.Errorf("next month: %v", err)
		}
	})
}

// TestUsageBroken: a client with a monthly limit is refused if its file cannot be written, others are not.
func TestUsageBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, l := range []Limits{{}, {Month: 1 << 40}} {
			a := testAccount(t, l)
			if err := os.WriteFile(a.path, []byte("nonsense"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := a.reserve(t.Context(), 1); refusedFor(err, lanes.CauseMonth) != (l.Month > 0) {
				t.Errorf("%+v: %v", l, err)
			}
			if err := os.Remove(a.path); err != nil {
				t.Fatal(err)
			}
			a.retry()
			if err := a.reserve(t.Context(), 1); err != nil {
				t.Errorf("%+v, repaired: %v", l, err)
			}
		}
	})
}

// TestRate: all flows of a key share the current rate; a flow that ends does not wait.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAccount(t, Limits{Rate: 1e6})
		began := time.Now()
		var flows sync.WaitGroup
		for range 4 {
			flows.Go(func() {
				for range 100 {
					if err := a.reserve(t.Context(), 25_000); err != nil {
						t.Error(err)
					}
				}
			})
		}
		flows.Wait()
		if took := time.Since(began).Seconds(); took < 9.9 || took > 10.1 {
			t.Errorf("10 MB at 1 MB/s took %.2f s", took)
		}
		a.set(Limits{Rate: 10e6})
		began = time.Now()
		for range 400 {
			_ = a.reserve(t.Context(), 25_000)
		}
		if took := time.Since(began).Seconds(); took < 0.8 || took > 1.1 {
			t.Errorf("10 MB at 10 MB/s took %.2f s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.reserve(ctx, 1); err == nil {
			t.Error("a flow that has ended may send")
		}
		a.set(Limits{})
		began = time.Now()
		for range 400 {
			_ = a.reserve(t.Context(), 25_000)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("without a limit it took %s", took)
		}
	})
}

// TestLimits: a client that reaches a limit is told which one, its other streams fail at once, and its status says why.
func TestLimits(t *testing.T) {
	r := newRig(t, loopback)
	i, err := Invite(r.server, r.address, Limits{Flows: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := Enrol(t.Context(), r.client, i); err != nil {
		t.Fatal(err)
	}
	r.connect()
	r.lanes(2)
	body := bytes.Repeat([]byte("x"), 1<<20)
	addr := origin(t, func(c *net.TCPConn) {
		_, _ = c.Write(body)
		_, _ = io.Copy(io.Discard, c)
	})
	c := r.dial(addr)
	defer c.Close()
	if got, err := io.ReadAll(io.LimitReader(c, int64(len(body)))); err != nil || !bytes.Equal(got, body) {
		t.Fatal(len(got), err)
	}
	for range 2 { // first told by the relay, then remembered
		if _, err := r.out.Dial(t.Context(), addr); !refusedFor(err, lanes.CauseFlows) {
			t.Errorf("a second flow: %v", err)
		}
	}
	if s := r.out.Status(); s.Refusal == "" {
		t.Error("the status says nothing")
	}

	known, err := LimitsOf(r.server)
	if err != nil || len(known) != 1 {
		t.Fatal(known, err)
	}
	for k := range known {
		if _, l, err := Limit(r.server, string(k)[:8], func(l *Limits) { l.Flows, l.Month = 0, 3<<19 }); err != nil || l != (Limits{Month: 3 << 19}) {
			t.Fatal(l, err)
		}
		r.at.expel()
		r.until("another flow is admitted", func() bool {
			c, err := r.out.Dial(t.Context(), addr)
			if err == nil { // otherwise the month was spent before the answer arrived
				_, err = io.ReadAll(c)
				c.Close()
			}
			return refusedFor(err, lanes.CauseMonth)
		})
		if _, err := r.out.Dial(t.Context(), addr); !refusedFor(err, lanes.CauseMonth) {
			t.Errorf("another stream: %v", err)
		}
		if used, err := Used(r.server, k, time.Now()); err != nil || used < 1<<20 {
			t.Error(used, err)
		}
		if used, err := Used(r.server, k, time.Now().AddDate(0, 2, 0)); used != 0 || err != nil {
			t.Error(used, err)
		}
	}
}
