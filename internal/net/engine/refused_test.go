package engine

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/net/link"
)

// refusing makes an origin that may not be dialed over some links, and records over which links it was tried.
type refusing struct {
	mu    sync.Mutex
	tried []string
}

func (f *refusing) origin(refuse map[string]error) *fakeOrigin {
	return &fakeOrigin{size: mib, onOpen: func(name string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tried = append(f.tried, name)
		if err := refuse[name]; err != nil {
			return &AttemptError{Op: "dial", Link: name, Outcome: fault.Unwanted, Err: err}
		}
		return nil
	}}
}

func (f *refusing) times(name string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tried {
		if t == name {
			n++
		}
	}
	return n
}

func TestForbiddenDestinations(t *testing.T) {
	well := func(t *testing.T, e *Engine) {
		t.Helper()
		for _, l := range e.Status().Links {
			if l.State != health.Up.String() || l.Bans != 0 {
				t.Errorf("%s is %s", l.Name, l.State)
			}
		}
	}
	t.Run("R183 a denied address ends the request at once, on no other link, and is no fault of a link", func(t *testing.T) {
		var f refusing
		e := newFakeEngine(t, f.origin(map[string]error{"a": link.ErrDenied}))
		e.SetLinks([]link.Link{{Name: "a", Metric: 1}, {Name: "b", Metric: 2}})
		_, err := e.Get(t.Context(), fakeRequest(true))
		if !errors.Is(err, link.ErrDenied) {
			t.Fatalf("error %v", err)
		}
		well(t, e)
		nothingHeld(t, e)
	})
	t.Run("R184 an address of another link's network is fetched over that link alone", func(t *testing.T) {
		var f refusing
		e := newFakeEngine(t, f.origin(map[string]error{"a": link.ErrOffLink}))
		e.SetLinks([]link.Link{{Name: "a", Metric: 1}, {Name: "b", Metric: 2}})
		resp, err := e.Get(t.Context(), fakeRequest(true))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != mib {
			t.Errorf("%d bytes, %v", n, err)
		}
		resp.Body.Close()
		if n := f.times("a"); n != 1 {
			t.Errorf("tried %d times over the other link", n)
		}
		well(t, e)
	})
}

// observer makes a function an Observer.
type observer func(Event)

func (o observer) Observe(e Event) { o(e) }

// TestRefusalsAtOnce: a GET that starts while another one runs knows that the origin refused a request of that one.
func TestRefusalsAtOnce(t *testing.T) {
	for outcome, want := range map[fault.Outcome]bool{fault.Unwanted: true, fault.Busy: true, fault.Reset: false} {
		t.Run("R252 "+outcome.String(), func(t *testing.T) {
			var once, failed atomic.Bool
			e := newFakeEngine(t, &fakeOrigin{size: 3 * mib, onNext: func(a RangeRequest, r *RangeResponse) (*RangeResponse, error) {
				if a.Want != nil && once.CompareAndSwap(false, true) {
					return nil, &AttemptError{Op: "head", Outcome: outcome, Err: errors.New("no further request")}
				}
				return r, nil
			}})
			e.SetLinks([]link.Link{{Name: "a"}})
			e.cfg.Observers = []Observer{observer(func(ev Event) {
				if ev.Kind == EventAttemptEnded && ev.Reason == outcome.String() {
					failed.Store(true)
					req := &Request{Target: fakeRequest(true).Target}
					if m, _ := e.recall(originOf(req.Target), req, e.fleet.links()); m.Refuses != want {
						t.Errorf("another GET begins with %+v", m)
					}
				}
			})}
			resp, err := e.Get(t.Context(), fakeRequest(true))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body) // which fails with the only link
			resp.Body.Close()
			if !failed.Load() {
				t.Error("no attempt failed")
			}
			nothingHeld(t, e)
		})
	}
}
