package engine

import (
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestWaitsForASlot: a transfer whose origin may have no further connection starts when one is closed, or gives up in time.
func TestWaitsForASlot(t *testing.T) {
	const waitForLink = time.Minute
	for name, free := range map[string]time.Duration{"in time": waitForLink / 2, "too late": 2 * waitForLink} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				full, freed := true, make(chan struct{})
				timer := time.AfterFunc(free, func() {
					mu.Lock()
					defer mu.Unlock()
					full = false
					close(freed)
				})
				defer timer.Stop()
				e := newFakeEngine(t, &fakeOrigin{size: 3 * mib, onOpen: func(name string) error {
					mu.Lock()
					defer mu.Unlock()
					if !full {
						return nil
					}
					return &AttemptError{Op: "dial", Link: name, Outcome: fault.NoSlot, Err: &link.NoSlotError{Link: name, Host: "h", Most: 1, Freed: freed}}
				}})
				e.cfg.WaitForLink = waitForLink
				began := time.Now()
				resp, err := e.Get(t.Context(), fakeRequest(true))
				took := time.Since(began)
				if free > waitForLink {
					if a, ok := errors.AsType[*AttemptError](err); !ok || a.Outcome != fault.NoSlot || took != waitForLink {
						t.Errorf("after %v: %v", took, err)
					}
				} else {
					if err != nil || took != free {
						t.Fatalf("after %v: %v", took, err)
					}
					if n, err := io.Copy(io.Discard, resp.Body); n != 3*mib || err != nil {
						t.Errorf("%d bytes, %v", n, err)
					}
					resp.Body.Close()
				}
				for _, l := range e.Status().Links {
					if l.State != "up" || l.Bans != 0 {
						t.Errorf("%+v", l)
					}
				}
				nothingHeld(t, e)
			})
		})
	}
}
