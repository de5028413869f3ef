package engine

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/fault"
	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/link"
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
