package rpc

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/tributary-http/tributary/internal/queue"
)

// notifications are the methods that notify clients of changes.
var notifications = map[queue.Status]string{
	queue.Active: "aria2.onDownloadStart", queue.Paused: "aria2.onDownloadPause", queue.Removed: "aria2.onDownloadStop",
	queue.Complete: "aria2.onDownloadComplete", queue.Failed: "aria2.onDownloadError",
}

// socket answers calls over a WebSocket until its client disconnects or the server ends.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		http.Error(w, "Too many WebSockets are open.", http.StatusServiceUnavailable)
		return
	}
	s.sockets.Add(1)
	defer s.sockets.Done()
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // ServeHTTP has checked the origin
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	c.SetReadLimit(maxRequest)
	ctx, cancel := context.WithCancel(s.ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
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
					"jsonrpc": "2.0", "method": notifications[e.Status], "params": []any{map[string]string{"gid": e.GID}},
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
		if shown {
			known.Store(true)
		}
		if write(answer) != nil {
			return
		}
	}
}
