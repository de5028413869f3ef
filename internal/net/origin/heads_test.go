package origin

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

// TestAnswerBeforeRequest: a connection on which bytes arrived before a request carries none.
func TestAnswerBeforeRequest(t *testing.T) {
	const bad = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
	t.Run("R48 before the request", func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		h := NewHeadConn(near)
		defer h.Close()
		h.begin(t.Context(), false)
		go func() { _, _ = io.WriteString(far, bad) }()
		if _, err := h.Read(make([]byte, len(bad))); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Write([]byte("GET / HTTP/1.1\r\n\r\n")); !errors.Is(err, errUnasked) {
			t.Errorf("%v, want %v", err, errUnasked)
		}
	})
	t.Run("R48 a request waits until net/http has looked, unless it gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			h := NewHeadConn(near)
			defer h.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); h.begin(ctx, true) }()
			synctest.Wait()
			select {
			case <-done:
				t.Error("it did not wait for net/http")
			default:
			}
			cancel(errors.New("gone"))
			<-done
		})
	})
}

// TestEndlessHead: a connection with a head that is too long delivers nothing more.
func TestEndlessHead(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	h := NewHeadConn(near)
	defer h.Close()
	h.begin(t.Context(), false)
	go func() {
		_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", MaxHead))
		_, _ = io.WriteString(far, "\r\n\r\n")
	}()
	for range 3 {
		if n, err := io.Copy(io.Discard, h); n > 0 || err != errHeadTooLong {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}
