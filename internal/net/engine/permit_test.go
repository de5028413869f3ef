package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// costWorld is a world whose links' cost changes while a request runs that may spend nothing.
type costWorld struct {
	*world
	e       *Engine
	consent Consent // whether the request may spend money
	links   []link.Link
}

func newCostWorld(t *testing.T) *costWorld {
	w := &costWorld{world: newWorld()}
	w.e = newWorldEngine(t, w.world, nil)
	w.consent.Give(false)
	w.set("a")
	return w
}

// set makes these the links: a name in capitals is metered.
func (w *costWorld) set(names ...string) {
	w.links = nil
	for i, n := range names {
		name := strings.ToLower(n)
		w.links = append(w.links, link.Link{Name: name, Metric: i, Terms: policy.Terms{Metered: name != n}, Path: &worldPath{w.world, name}})
	}
	w.e.SetLinks(w.links)
}

// got returns how many bytes a link has delivered, and how many connections were made over it.
func (w *costWorld) got(name string) (bytes int64, dials int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.brought[name], w.opened[name]
}

// stays checks that a link carries nothing from now on.
func (w *costWorld) stays(t *testing.T, name string) (check func()) {
	t.Helper()
	bytes, dials := w.got(name)
	return func() {
		t.Helper()
		if b, d := w.got(name); b != bytes || d != dials {
			t.Errorf("%s has brought %d bytes and %d connections since it must carry nothing", name, b-bytes, d-dials)
		}
	}
}

// fetch gets the object without spending money. err receives its result.
func (w *costWorld) fetch(t *testing.T) (err <-chan error) {
	ended := make(chan error, 1)
	go func() {
		resp, err := w.e.Get(t.Context(), &Request{
			Target: Target{Scheme: "http", Host: "o.test:80", Addr: "o.test:80", Path: "/"}, Header: http.Header{},
			Options: Options{Consent: &w.consent},
		})
		if err != nil {
			ended <- err
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(struct{ io.Reader }{resp.Body})
		if err == nil && (len(b) != worldSize || slices.ContainsFunc([]int{0, worldSize / 2, worldSize - 1}, func(i int) bool { return b[i] != at(int64(i)) })) {
			err = errors.New("wrong bytes")
		}
		ended <- err
	}()
	return ended
}

// TestWakeWithoutMail: two posts may wake the loop twice although it took both at once. Its deadline stays.
func TestWakeWithoutMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCostWorld(t)
		ended := w.fetch(t)
		time.Sleep(5 * time.Second)
		w.set("A")
		synctest.Wait()
		since := time.Now()
		time.Sleep(time.Second)
		w.e.fleet.runs[0].mailbox.signal()
		if err := <-ended; err == nil || time.Since(since) != time.Minute {
			t.Errorf("failed after %v: %v", time.Since(since), err)
		}
	})
}

// TestCostsMidway: the link of a transfer that may spend nothing becomes metered.
func TestCostsMidway(t *testing.T) {
	begin := func(t *testing.T, links ...string) (*costWorld, <-chan error) {
		w := newCostWorld(t)
		w.set(links...)
		ended := w.fetch(t)
		time.Sleep(5 * time.Second)
		if n, _ := w.got("a"); n == 0 {
			t.Fatal("the transfer has not begun")
		}
		return w, ended
	}
	t.Run("another free link is there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, ended := begin(t, "a", "b")
			w.set("A", "b")
			synctest.Wait()
			check := w.stays(t, "a")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			check()
		})
	})
	t.Run("a free link joins", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, ended := begin(t, "a")
			w.set("A")
			synctest.Wait()
			check := w.stays(t, "a")
			time.Sleep(30 * time.Second)
			w.set("A", "c")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			check()
		})
	})
	t.Run("a metered link joins, and the first one is free again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, ended := begin(t, "a")
			w.set("A", "C")
			synctest.Wait()
			check := w.stays(t, "a")
			time.Sleep(50 * time.Second)
			check()
			w.set("a", "C")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n, dials := w.got("c"); n > 0 || dials > 0 {
				t.Errorf("a link that was never free was used: %d bytes, %d connections", n, dials)
			}
		})
	})
	t.Run("a metered link becomes free", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, ended := begin(t, "a", "B")
			w.set("A", "b")
			synctest.Wait()
			check := w.stays(t, "a")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			check()
		})
	})
	t.Run("no other link: it fails after wait_for_link", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, ended := begin(t, "a", "B")
			w.set("A", "B")
			synctest.Wait()
			check, since := w.stays(t, "a"), time.Now()
			err := <-ended
			if a, ok := errors.AsType[*AttemptError](err); !ok || a.Outcome != fault.Silence {
				t.Errorf("ended with %v", err)
			}
			if took := time.Since(since); took != time.Minute {
				t.Errorf("failed after %v", took)
			}
			check()
			if n, dials := w.got("b"); n > 0 || dials > 0 {
				t.Errorf("a link that costs money was used: %d bytes, %d connections", n, dials)
			}
		})
	})
	t.Run("the consent ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newCostWorld(t)
			w.consent.Give(true)
			w.set("a", "B")
			ended := w.fetch(t)
			time.Sleep(10 * time.Second)
			if n, _ := w.got("b"); n == 0 {
				t.Fatal("the metered link is not used")
			}
			w.consent.Give(false)
			w.e.SetLinks(w.links)
			synctest.Wait()
			check := w.stays(t, "b")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			check()
		})
	})
	t.Run("before the first response", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newCostWorld(t)
			w.change(func() { w.dead["a"] = true })
			ended := w.fetch(t)
			synctest.Wait()
			w.set("A")
			synctest.Wait()
			check := w.stays(t, "a")
			w.change(func() { w.dead["a"] = false })
			time.Sleep(time.Second)
			w.set("A", "c")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			check()
		})
	})
	t.Run("who may spend money goes on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newCostWorld(t)
			w.consent.Give(true)
			ended := w.fetch(t)
			time.Sleep(5 * time.Second)
			_, before := w.got("a")
			w.set("A")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if _, dials := w.got("a"); dials != before {
				t.Errorf("%d new connections", dials-before)
			}
		})
	})
}

// piped is a connection whose content ends when it is closed.
type piped struct {
	Conn
	content *io.PipeWriter
}

func (c piped) Close() {
	c.content.CloseWithError(&AttemptError{Op: "body", Outcome: fault.Canceled, Err: net.ErrClosed})
	c.Conn.Close()
}

// TestCostsUndivided: an answer that cannot be divided breaks off, visibly, when its link becomes metered.
func TestCostsUndivided(t *testing.T) {
	content, writer := io.Pipe()
	o := &fakeOrigin{size: mib, onNext: func(_ RangeRequest, r *RangeResponse) (*RangeResponse, error) {
		r.Unfit, r.Body = "coding", content
		return r, nil
	}}
	e := newFakeEngine(t, o)
	e.cfg.Opener = opener(func(ctx context.Context, l link.Link, to Target) (Conn, error) {
		c, err := o.Open(ctx, l, to)
		return piped{c, writer}, err
	})
	wifi := link.Link{Name: "a", Path: &worldPath{newWorld(), "a"}}
	e.SetLinks([]link.Link{wifi})
	q := fakeRequest(false) // without a Range field: no second request is needed
	q.Links.Unmetered = true
	resp, err := e.Get(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go func() { _, _ = writer.Write(make([]byte, 1000)) }()
	if n, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
		t.Fatal(n, err)
	}
	wifi.Terms.Metered = true
	e.SetLinks([]link.Link{wifi})
	n, err := resp.Body.Read(make([]byte, 1000))
	if a, ok := errors.AsType[*AttemptError](err); n > 0 || !ok || a.Outcome != fault.LinkLost || !errors.Is(err, ErrCosts) {
		t.Errorf("%d bytes more, %v", n, err)
	}
	resp.Body.Close()
	if n := len(e.fleet.stream); n > 0 {
		t.Errorf("%d answers are still watched", n)
	}
}
