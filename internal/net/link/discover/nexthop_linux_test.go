package discover

import (
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestQuestionsNeedLittleStack: a goroutine that has asked the kernel and now waits, as each connection's does, has not kept the
// stack that the question took.
func TestQuestionsNeedLittleStack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection shrinks stacks
	const askers = 50
	k := &Kernel{}
	if _, err := k.NextHop(netip.IPv6Loopback()); err != nil { // starts what all share
		t.Fatal(err)
	}
	before := stackBytes()
	var asked, waiting sync.WaitGroup
	stop := make(chan struct{})
	for range askers {
		asked.Add(1)
		waiting.Go(func() {
			_, err := k.NextHop(netip.IPv6Loopback())
			if err != nil {
				t.Error(err)
			}
			asked.Done()
			<-stop
		})
	}
	asked.Wait()
	each := (stackBytes() - before) / askers
	close(stop)
	waiting.Wait()
	if each > 32<<10 {
		t.Errorf("a goroutine that asked keeps %d KiB of stack", each>>10)
	}
}

func stackBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}

// TestSilentKernel: a question that gets no answer keeps neither its asker nor others waiting for ever.
func TestSilentKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, stuck := &Kernel{}, make(chan struct{})
		var askers sync.WaitGroup
		for range 3 {
			askers.Go(func() {
				if err := k.ask(func(*kernel) error { <-stuck; return nil }); err != errSilent {
					t.Error(err)
				}
			})
		}
		askers.Wait()
		close(stuck)
		if err := k.ask(func(*kernel) error { return nil }); err != nil {
			t.Errorf("later: %v", err)
		}
		time.Sleep(3 * idleTime)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.questions != nil {
			t.Error("the goroutine that asks does not end")
		}
	})
}
