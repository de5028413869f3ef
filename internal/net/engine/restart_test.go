package engine

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/link"
)

// replacing makes an origin whose object is replaced after n bytes of the first answer, and, if again is set, also after each of
// the next answers.
func replacing(n int64, again bool) *fakeOrigin {
	var version, firsts atomic.Int64
	return &fakeOrigin{size: mib, onNext: func(a RangeRequest, r *RangeResponse) (*RangeResponse, error) {
		tag := string(rune('a' + version.Load()))
		r.ID.Validator, r.ID.ETag = tag, tag
		r.Header.Set("Etag", tag)
		switch {
		case a.Want != nil && a.Want.Validator != tag:
			return r, &AttemptError{Op: "check", Outcome: fault.Changed, Err: errors.New("another version")}
		case a.Want == nil && (firsts.Add(1) == 1 || again):
			reset := &AttemptError{Op: "body", Outcome: fault.Reset, Err: io.ErrUnexpectedEOF}
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, n), iotest.ErrReader(reset)))
			version.Add(1)
		}
		return r, nil
	}}
}

func TestRestart(t *testing.T) {
	for _, ranged := range []bool{true, false} {
		t.Run("R107 nothing delivered: the new version, with its head", func(t *testing.T) {
			e := newFakeEngine(t, replacing(0, false))
			resp, err := e.Get(t.Context(), fakeRequest(ranged))
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if tag := resp.Header.Get("Etag"); n != mib || err != nil || tag != "b" {
				t.Errorf("%d bytes of %s, %v", n, tag, err)
			}
			resp.Body.Close()
			nothingHeld(t, e)
		})
		t.Run("R107 once", func(t *testing.T) {
			e := newFakeEngine(t, replacing(0, true))
			_, err := e.Get(t.Context(), fakeRequest(ranged))
			if a, ok := errors.AsType[*AttemptError](err); !ok || a.Outcome != fault.Changed {
				t.Errorf("got %v", err)
			}
			nothingHeld(t, e)
		})
		t.Run("R107 bytes delivered: an error, none of the new version", func(t *testing.T) {
			e := newFakeEngine(t, replacing(10_000, false))
			resp, err := e.Get(t.Context(), fakeRequest(ranged))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(struct{ io.Reader }{resp.Body})
			if len(b) != 10_000 || err == nil || resp.Header.Get("Etag") != "a" {
				t.Errorf("%d bytes, %v", len(b), err)
			}
			resp.Body.Close()
			nothingHeld(t, e)
		})
	}
}

// A head does not wait forever for a body that does not arrive.
func TestHeadIsNotHeld(t *testing.T) {
	from, to := io.Pipe()
	var firsts atomic.Int64
	e := newFakeEngine(t, &fakeOrigin{size: mib, onNext: func(a RangeRequest, r *RangeResponse) (*RangeResponse, error) {
		if firsts.Add(1) == 1 {
			r.Body = from
		}
		return r, nil
	}})
	e.SetLinks([]link.Link{{Name: "a"}})
	resp, err := e.Get(t.Context(), fakeRequest(false))
	if err != nil || resp.ContentLength != mib {
		t.Fatalf("%+v, %v", resp, err)
	}
	_ = to.CloseWithError(&AttemptError{Op: "body", Outcome: fault.Reset, Err: io.ErrUnexpectedEOF})
	if n, err := io.Copy(io.Discard, resp.Body); n != mib || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	resp.Body.Close()
	nothingHeld(t, e)
}
