package rpc

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/tributary-http/tributary/internal/front/queue"
)

// notifications are the methods that notify clients of changes.
var notifications = map[queue.Status]string{
	queue.Active: "aria2.onDownloadStart", queue.Paused: "aria2.onDownloadPause", queue.Removed: "aria2.onDownloadStop",
	queue.Complete: "aria2.onDownloadComplete", queue.Failed: "aria2.onDownloadError",
}

// strangers are the sockets that have not shown the token, the oldest first. They are few and short-lived, and a
// newcomer takes the place of the oldest, so that they cost nobody else a place.
type strangers struct {
	mu  sync.Mutex
	all []*stranger
}

type stranger struct{ end context.CancelFunc }

// enter adds a socket, which end closes, until leave is called.
func (s *strangers) enter(end context.CancelFunc) (leave func()) {
	one := &stranger{end}
	late := time.AfterFunc(shortTime, end)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == maxStrangers {
		s.all[0].end()
		s.all = s.all[1:]
	}
	s.all = append(s.all, one)
	return func() {
		late.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = slices.DeleteFunc(s.all, func(o *stranger) bool { return o == one })
	}
}

// socket answers calls over a WebSocket until its client disconnects or the server ends.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	s.sockets.Add(1)
	defer s.sockets.Done()
	// ServeHTTP has checked the origin
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	c.SetReadLimit(maxRequest)
	ctx, cancel := context.WithCancel(s.ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
	leave := s.strangers.enter(cancel)
	defer leave()
	write := func(v any) error {
		ctx, cancel := context.WithTimeout(ctx, shortTime)
		defer cancel()
		return c.Write(ctx, websocket.MessageText, encode(v))
	}
	var known atomic.Bool            // the client has shown the token
	events, stop := s.Queue.Listen() // before the first answer, so that the client hears of everything that it orders
	telling.Go(func() {
		defer cancel()
		defer stop()
		for {
			select {
			case e, ok := <-events:
				if !ok {
					return
				}
				if known.Load() && write(map[string]any{
					"jsonrpc": "2.0", "method": notifications[e.Status],
					"params": []any{map[string]string{"gid": e.GID}},
				}) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			return
		}
		answer, _, shown := s.answer(text, r.Header.Get("Origin"))
		if shown && !known.Load() {
			select {
			case s.places <- struct{}{}:
				defer func() { <-s.places }()
			default:
				_ = c.Close(websocket.StatusTryAgainLater, "Too many WebSockets are open.") // the client is gone
				return
			}
			leave()
			known.Store(true)
		}
		if write(answer) != nil {
			return
		}
	}
}
