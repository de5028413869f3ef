package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// echo is a TCP server that echoes its input, and then closes its side.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// fastLink is a link to an echo server that is fast enough for tests; its close, which waits, runs first.
func fastLink(t *testing.T) *relay {
	t.Helper()
	r, err := newRelay(shape{name: "fast", rate: 100e6, delay: time.Millisecond}, echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

func dialLink(t *testing.T, r *relay) *net.TCPConn {
	t.Helper()
	c, err := r.dial(t.Context(), "tcp", r.origin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func random(t *testing.T, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRelayCarriesBytesIntact(t *testing.T) {
	r := fastLink(t)
	const connections, size = 3, 2_000_000
	data := random(t, size)
	var wg sync.WaitGroup
	for range connections {
		c := dialLink(t, r)
		wg.Go(func() {
			if _, err := c.Write(data); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			got, err := io.ReadAll(c) // ends because the end of the other side is carried too
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back, want the %d sent; error %v", len(got), size, err)
			}
		})
	}
	wg.Wait()
	if n := r.carried.Load(); n != connections*size {
		t.Errorf("counted %d bytes, want %d", n, connections*size)
	}
}

func TestKilledLinkStalls(t *testing.T) {
	r := fastLink(t)
	c := dialLink(t, r)
	exchange := func(text string) {
		t.Helper()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
			t.Fatalf("got %q, %v, want %q", got, err, text)
		}
	}
	send := func(text string) {
		t.Helper()
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send("before")
	exchange("before")

	r.kill()
	r.kill() // a second kill has no effect
	send("after")
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a dead link gave %d bytes, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if c, err := r.dial(ctx, "tcp", r.origin); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a dial over a dead link: %v, %v", c, err)
	}

	r.revive()
	r.revive()
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	exchange("after") // nothing was lost: it was in flight
	c = dialLink(t, r)
	send("again")
	exchange("again")
}

func TestCloseEndsAStalledLink(t *testing.T) {
	r := fastLink(t)
	c := dialLink(t, r)
	r.kill()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	r.close() // waits for all goroutines of the link
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived its link")
	}
}

func TestLinkLeadsToItsOriginOnly(t *testing.T) {
	r := fastLink(t)
	if c, err := r.dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
		c.Close()
		t.Error("dialed another address")
	}
}
