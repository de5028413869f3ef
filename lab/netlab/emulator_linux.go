package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// errStopped reports that the link's emulator has ended.
var errStopped = errors.New("lab: the link is closed")

// emulator carries the packets of one link between its two TUN devices. One goroutine, run, owns the model and the
// devices; others change it through do.
type emulator struct {
	client, server int      // TUN devices, non-blocking
	wake           *os.File // eventfd: signals that calls are waiting
	wakeFd         int
	down, up       *direction
	pool           pool
	began          time.Time

	mu    sync.Mutex // guards calls; not held while they run
	calls []func(now time.Duration)

	quit bool // owned by run
	done chan struct{}
}

// newEmulator takes over the two devices and starts to carry packets between them.
func newEmulator(client, server int, down, up Shape, seed uint64) (*emulator, error) {
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	e := &emulator{
		client: client,
		server: server,
		wake:   os.NewFile(uintptr(wake), "eventfd"),
		wakeFd: wake,
		began:  time.Now(),
		done:   make(chan struct{}),
	}
	e.down = newDirection(down, rand.New(rand.NewPCG(seed, 0)), &e.pool)
	e.up = newDirection(up, rand.New(rand.NewPCG(seed, 1)), &e.pool)
	addProcs(1)
	go e.run()
	return e, nil
}

// do runs f in the emulator's goroutine and waits for it.
func (e *emulator) do(f func(now time.Duration)) error {
	ran := make(chan struct{})
	e.mu.Lock()
	e.calls = append(e.calls, func(now time.Duration) { f(now); close(ran) })
	e.mu.Unlock()
	if _, err := e.wake.Write(binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
		return errStopped
	}
	select {
	case <-ran:
		return nil
	case <-e.done:
		select { // the last call is the one that ends the emulator
		case <-ran:
			return nil
		default:
			return errStopped
		}
	}
}

// close ends the emulator and closes its devices, which removes them.
func (e *emulator) close() {
	if e.do(func(time.Duration) { e.quit = true }) != nil {
		return
	}
	<-e.done
}

// procs guards the number of Ps (see package runtime), which belongs to the whole process: each emulator adds one.
var procs sync.Mutex

func addProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// maxWait bounds the sleep in ppoll: Go's scheduler interrupts it with a signal when it wants the thread to stop, but
// not under GODEBUG=asyncpreemptoff=1.
const maxWait = 20 * time.Millisecond

// run is the emulator's loop: take packets from the devices, hand over those that are due, sleep until the next is due.
//
// Go's timers round up to a millisecond when nothing else wakes the poller, and a thread that returns from a system
// call waits for the scheduler, whose other threads may have to wait for a busy processor. Packets would be late, and
// the link would measure slower than it is. So the loop keeps its P while it sleeps, which is why it adds one, and its
// thread has real-time priority where that is permitted.
func (e *emulator) run() {
	defer close(e.done)
	defer addProcs(-1)
	runtime.LockOSThread() // never unlocked: the thread's priority must not pass to other goroutines
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)

	fds := []unix.PollFd{
		{Fd: int32(e.client), Events: unix.POLLIN},
		{Fd: int32(e.server), Events: unix.POLLIN},
		{Fd: int32(e.wakeFd), Events: unix.POLLIN},
	}
	for !e.quit {
		if fds[0].Revents != 0 {
			e.drain(e.client, e.up)
		}
		if fds[1].Revents != 0 {
			e.drain(e.server, e.down)
		}
		now := time.Since(e.began)
		e.forward(e.client, e.down, now)
		e.forward(e.server, e.up, now)

		wait := maxWait
		if at, ok := e.next(); ok {
			wait = min(wait, max(at-time.Since(e.began), 0))
		}
		if errno := rawPoll(fds, wait); errno == 0 && fds[2].Revents != 0 {
			e.answer()
		}
	}
	unix.Close(e.client)
	unix.Close(e.server)
	e.wake.Close()
}

func (e *emulator) answer() {
	var count [8]byte
	_, _ = unix.Read(e.wakeFd, count[:])
	e.mu.Lock()
	calls := e.calls
	e.calls = nil
	e.mu.Unlock()
	for _, call := range calls {
		call(time.Since(e.began))
	}
}

// drain takes every packet that a device's interface has sent.
func (e *emulator) drain(dev int, d *direction) {
	for {
		p := e.pool.get()
		n, errno := rawIO(unix.SYS_READ, dev, p.buf[:])
		if errno != 0 || n == 0 {
			e.pool.put(p)
			return
		}
		if p.n = n; !unicast(p.buf[:n]) {
			e.pool.put(p)
			continue
		}
		d.enqueue(time.Since(e.began), p)
	}
}

// forward hands every packet that is due to a device.
func (e *emulator) forward(dev int, d *direction, now time.Duration) {
	for p := d.deliver(now); p != nil; p = d.deliver(now) {
		if _, errno := rawIO(unix.SYS_WRITE, dev, p.buf[:p.n]); errno != 0 { // EIO: the interface is down
			d.counts.Delivered--
			d.counts.DarkDrops++
		}
		e.pool.put(p)
	}
}

func (e *emulator) next() (time.Duration, bool) {
	down, ok := e.down.next()
	up, ok2 := e.up.next()
	switch {
	case ok && ok2:
		return min(down, up), true
	case ok:
		return down, true
	}
	return up, ok2
}

// unicast reports whether a packet has one receiver. A kernel's own messages to a network (IGMP, MLD, router
// solicitations) would start ramps and count as traffic.
func unicast(b []byte) bool {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return b[16] < 224
	case len(b) >= 40 && b[0]>>4 == 6:
		return b[24] != 0xff
	}
	return false
}
