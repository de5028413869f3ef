package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// hungUp ends a transfer whose client is gone. A client that has every byte closes at once, perhaps before the loop
// learns that they were delivered: that is success.
func (r *run) hungUp() {
	for len(r.events) > 0 && !r.over {
		r.take(<-r.events)
	}
	if r.opening.Version() != nil && r.delivery.given == r.opening.Content().End {
		r.finish(nil)
		return
	}
	r.finish(r.ctx.Err())
}

// finish ends the loop: nil = everything was delivered.
func (r *run) finish(err error) {
	if r.over {
		return
	}
	r.over, r.failed = true, err
	if r.opening.Version() == nil {
		if err != nil {
			r.started <- start{err: err}
		}
		return
	}
	if r.pending != nil && err != nil { // nothing was delivered: better an error than half an answer
		r.pending = nil
		r.started <- start{err: err}
	}
	r.begin()
	r.e.runs(-1, -r.further)
	s := r.report(time.Now())
	r.e.observe(Event{
		Kind:     EventTransferEnded,
		At:       time.Now(),
		Transfer: r.id,
		Reason:   r.result(err),
		Bytes:    s.Received,
		Waste:    s.Waste,
		Took:     time.Since(r.began),
		Ended:    r.shown.status.Load(),
	})
	r.e.Hint(r.req.Target, r.opening.Version().Total)
	notes := r.notes(s)
	r.e.remember(r, r.opening.Remember(), notes)
	r.e.cfg.Log.Info("transfer ended", "transfer", r.id, "result", r.result(err), "bytes", s.Received, "waste", s.Waste,
		"took", time.Since(r.began).Round(time.Millisecond), "links", len(notes))
}

// result names the outcome for metrics and logs.
func (r *run) result(err error) string {
	switch a := new(AttemptError); {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "client_gone"
	case errors.As(err, &a):
		return a.Outcome.Blame().String()
	}
	return "local"
}

// clear ends everything that the run owns and waits for it.
func (r *run) clear() {
	close(r.left)
	r.stopContending()
	r.e.fleet.leave(r)
	for _, l := range r.kept {
		if l.keep.Load() { // it is about to give its connection back, which the end of the response would prevent
			l.alive.Wait()
		}
	}
	close(r.out)
	r.cancel()
	r.stop()
	for _, l := range r.conns {
		l.close()
		l.alive.Wait()
	}
	for _, l := range r.kept {
		l.alive.Wait()
	}
	for len(r.events) > 0 {
		if e := <-r.events; e.piece.b != nil {
			e.piece.b.free()
		}
	}
	r.delivery.store.clear()
	if r.share != nil && r.share.Leave() {
		debug.FreeOSMemory()
	}
	close(r.done)
}
