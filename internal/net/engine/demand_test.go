package engine

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/net/link"
)

// TestDemand: Config.Running is called for transfers, and for nothing else.
func TestDemand(t *testing.T) {
	var told []int
	serve := func(o *fakeOrigin) *Engine {
		told = nil
		e := New(Config{
			Opener: o, Log: slog.New(slog.DiscardHandler), Scheduler: scheduler("alg3"), Budget: 8 * mib, Window: 4 * mib, Threshold: 64 << 10,
			Running: func(n, _ int) { told = append(told, n) },
		})
		e.SetLinks([]link.Link{{Name: "a", Path: &worldPath{newWorld(), "a"}}, {Name: "b", Path: &worldPath{newWorld(), "b"}}})
		return e
	}
	get := func(e *Engine) *Response {
		resp, err := e.Get(t.Context(), fakeRequest(true))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	end := func(r *Response) {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close() // the loop has ended
	}
	expect := func(t *testing.T, want ...int) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	}

	t.Run("two transfers at a time", func(t *testing.T) {
		e := serve(&fakeOrigin{size: mib})
		one := get(e)
		two := get(e)
		end(one)
		end(two)
		expect(t, 1, 2, 1, 0)
	})
	t.Run("a client that hangs up", func(t *testing.T) {
		e := serve(&fakeOrigin{size: 3 * mib})
		get(e).Body.Close()
		expect(t, 1, 0)
	})
	t.Run("a small object is no transfer", func(t *testing.T) {
		end(get(serve(&fakeOrigin{size: 1000})))
		expect(t)
	})
	t.Run("an error is no transfer", func(t *testing.T) {
		end(get(serve(&fakeOrigin{size: mib, onNext: func(_ RangeRequest, r *RangeResponse) (*RangeResponse, error) {
			r.StatusCode, r.Unfit = http.StatusNotFound, "status"
			return r, nil
		}})))
		expect(t)
	})
	t.Run("a version that is replaced before its first byte", func(t *testing.T) {
		end(get(serve(replacing(0, false))))
		expect(t, 1, 0, 1, 0)
	})
}
