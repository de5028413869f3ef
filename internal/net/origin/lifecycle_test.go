package origin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

func TestR121_R136_ReuseAcrossTransfers(t *testing.T) {
	r := newRig(t, ot.Object{Size: 5000})
	c := r.open(0)
	untimed := os.Getenv("TRIBUTARY_EMULATOR") != "" // qemu-user has no TCP_INFO
	if c.Info().Reused || c.Info().RTT <= 0 && !untimed || c.Info().Remote != r.s.Addr(0) {
		t.Errorf("new connection: %+v", c.Info())
	}
	r.send(c, whole(r))
	r.next(c)
	c.Release()
	c.Close() // no effect on the released connection
	if err := c.Send(whole(r)); err == nil {
		t.Error("Send after Release")
	}

	other := r.open(1)
	if other.Info().Reused {
		t.Error("R121 reused over another link")
	}
	again := r.open(0)
	if !again.Info().Reused {
		t.Error("not reused")
	}
	r.send(again, later(r))
	r.next(again)
	r.send(other, later(r))
	r.next(other)
	if got := r.s.Accepted(); got != 2 {
		t.Errorf("%d connections", got)
	}
}

func TestReleaseOfUncleanConnections(t *testing.T) {
	tests := []struct {
		name   string
		fault  ot.Fault
		before func(*rig, engine.Conn)
	}{
		{"answer outstanding", nothing, func(r *rig, c engine.Conn) { r.send(c, whole(r)) }},
		{"body unread", nothing, func(r *rig, c engine.Conn) {
			r.send(c, whole(r))
			if _, err := c.Next(); err != nil {
				r.t.Fatal(err)
			}
		}},
		{"body closed early", nothing, func(r *rig, c engine.Conn) {
			r.send(c, whole(r))
			response, err := c.Next()
			if err != nil {
				r.t.Fatal(err)
			}
			response.Body.Close()
		}},
		{"Connection: close", ot.ConnectionClose(), func(r *rig, c engine.Conn) { r.send(c, whole(r)); r.next(c) }},
		{"HTTP/1.0", ot.HTTP10(), func(r *rig, c engine.Conn) { r.send(c, whole(r)); r.next(c) }},
		{"R48 surplus", ot.SurplusBody(3), func(r *rig, c engine.Conn) { r.send(c, whole(r)); r.next(c) }},
		{"failed", ot.Garbage(), func(r *rig, c engine.Conn) {
			r.send(c, whole(r))
			if _, err := c.Next(); err == nil {
				r.t.Fatal("no error")
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, ot.Object{Size: 5000}, tt.fault)
			c := r.open(0)
			tt.before(r, c)
			c.Release()
			if r.open(0).Info().Reused {
				t.Error("reused")
			}
		})
	}
}

// A kept connection that the server closed is found dead before a request is risked on it.
func TestIdleConnectionDies(t *testing.T) {
	closed := make(chan struct{})
	s := ot.New(t, ot.Object{Size: 50})
	p := newPool(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &watched{nc.(*net.TCPConn), closed}, nil
	}, nil)
	defer p.Close()
	r := &rig{t, s, p}
	c := r.open(0)
	r.send(c, whole(r))
	r.next(c)
	c.Release()
	s.CloseConns()
	s.Close() // every connection has ended on the server's side
	if _, err := p.Open(t.Context(), links[0], r.target()); err == nil || outcome(t, err) != fault.Unreachable {
		t.Errorf("opened: %v", err)
	}
	<-closed
}

// watched reports when the connection is closed.
type watched struct {
	*net.TCPConn
	closed chan struct{}
}

func (w *watched) Close() error {
	close(w.closed)
	return w.TCPConn.Close()
}

// RFC 9112 section 9.3.1: a client that loses an idle connection may repeat the request on a new one.
func TestR062_R136_Stale(t *testing.T) {
	r := newRig(t, ot.Object{Size: 5000}, ot.OnSeq(2, ot.Raw(""), ot.ClosesEarly()))
	c := r.open(0)
	r.send(c, whole(r))
	r.next(c)
	c.Release()
	again := r.open(0)
	r.send(again, later(r))
	if _, err := again.Next(); err == nil || outcome(t, err) != fault.Stale {
		t.Errorf("got %v", err)
	}
	if n := len(r.s.Requests()); n != 2 { // the engine repeats the request, and counts
		t.Errorf("%d requests", n)
	}
	fresh := newRig(t, ot.Object{Size: 5000}, ot.Raw(""), ot.ClosesEarly())
	c = fresh.open(0)
	fresh.send(c, whole(fresh))
	if _, err := c.Next(); err == nil || outcome(t, err) != fault.Unanswered {
		t.Errorf("fresh connection: %v", err)
	}
}

// Servers that dislike pipelining: requests behind the first one come back as errors, never as wrong bytes.
func TestR135_PipeliningBreaks(t *testing.T) {
	tests := []struct {
		name    string
		fault   ot.Fault
		good    int // answers before the error
		outcome fault.Outcome
	}{
		{"closes after the first answer", ot.OnSeq(1, ot.ClosesEarly()), 1, fault.Unanswered},
		{"announces that it closes", ot.OnSeq(1, ot.ConnectionClose()), 1, fault.Unanswered},
		{"ignores the second request", ot.OnSeq(2, ot.Ignored()), 1, fault.BadRange},
		{"answers out of order", ot.OnSeq(2, ot.OutOfOrder()), 1, fault.BadRange},
		{"answers garbage", ot.OnSeq(2, ot.Garbage()), 1, fault.Unanswered},
		{"R48 surplus of the first answer", ot.OnSeq(1, ot.SurplusBody(5)), 1, fault.Unanswered},
		{"resets in the second body", ot.OnSeq(2, ot.ResetAfter(100)), 1, fault.Reset},
		{"refuses the third", ot.OnSeq(3, ot.Busy(503, 1)), 2, fault.Busy},
	}
	for _, tt := range tests {
		t.Run("R135 "+tt.name, func(t *testing.T) {
			r := newRig(t, ot.Object{Size: 5000}, tt.fault)
			c := r.open(0)
			// Requests behind the one that breaks the connection may come too late, and their error may replace the one that the
			// body waits for.
			for i := range int64(tt.good + 1) {
				r.send(c, r.ask(i*1000, (i+1)*1000, true))
			}
			if tt.outcome != fault.Reset {
				_ = c.Send(r.ask(3000, 4000, true))
			}
			for i := range int64(tt.good) {
				if response := r.next(c); response.Range.Start != i*1000 {
					t.Fatalf("answer %d: %v", i, response.Range)
				}
			}
			response, err := c.Next()
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
			}
			if err == nil || outcome(t, err) != tt.outcome {
				t.Errorf("got %v, want %s", err, tt.outcome)
			}
		})
	}
}

func TestCloseUnblocks(t *testing.T) {
	t.Run("Next", func(t *testing.T) {
		r := newRig(t, ot.Object{Size: 5000}, ot.Ignored())
		c := r.open(0)
		r.send(c, whole(r))
		done := make(chan error, 1)
		go func() { _, err := c.Next(); done <- err }()
		c.Close()
		if err := <-done; outcome(t, err) != fault.Canceled {
			t.Errorf("got %v", err)
		}
	})
	t.Run("body", func(t *testing.T) {
		r := newRig(t, ot.Object{Size: 5000}, ot.StallAfter(100, nil))
		c := r.open(0)
		r.send(c, whole(r))
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(response.Body, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { _, err := response.Body.Read(make([]byte, 10)); done <- err }()
		c.Close()
		if err := <-done; outcome(t, err) != fault.Canceled {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Send", func(t *testing.T) {
		// The answer is not read and the server reads ahead 64 requests only: Send blocks in the end.
		r := newRig(t, ot.Object{Size: 64 << 20})
		c := r.open(0)
		done := make(chan error, 1)
		go func() {
			a := whole(r)
			a.Header = map[string][]string{"X": {strings.Repeat("x", 64<<10)}}
			for {
				if err := c.Send(a); err != nil {
					done <- err
					return
				}
			}
		}()
		for len(r.s.Requests()) < 60 { // no event reports their arrival
			runtime.Gosched()
		}
		c.Close()
		if err := <-done; outcome(t, err) != fault.Canceled {
			t.Errorf("got %v", err)
		}
	})
}

func TestMisuse(t *testing.T) {
	r := newRig(t, ot.Object{Size: 5000})
	c := r.open(0)
	if _, err := c.Next(); err == nil {
		t.Error("Next without a request")
	}
	r.send(c, whole(r), later(r))
	response, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(); err == nil {
		t.Error("Next before the end of the body")
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if n, err := response.Body.Read(nil); n != 0 || err != io.EOF {
		t.Errorf("read after the end: %d, %v", n, err)
	}
	r.next(c)
	bad := whole(r)
	bad.Header = map[string][]string{"A": {"b\r\nc: d"}}
	if err := c.Send(bad); err == nil || outcome(t, err) != fault.Unwanted {
		t.Errorf("R52: %v", err)
	}
	r.send(c, whole(r)) // a refused request leaves the connection unchanged
	r.next(c)
}

func TestDialErrors(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		outcome fault.Outcome
	}{
		{"refused", &link.DialError{Link: "w0", Op: link.OpConnect, Err: syscall.ECONNREFUSED}, fault.Unreachable},
		{"bind", &link.DialError{Link: "w0", Op: link.OpBind, Err: &link.BindError{Link: "w0", Err: syscall.EPERM}}, fault.Unbound},
	}
	for _, tt := range tests {
		p := newPool(func(context.Context, link.Link, string, string) (net.Conn, error) { return nil, tt.err }, nil)
		_, err := p.Open(t.Context(), links[0], engine.Target{Scheme: "http", Host: "h", Addr: "h:80", Path: "/"})
		var a *engine.AttemptError
		if !errors.As(err, &a) || a.Outcome != tt.outcome || a.Link != "w0" || a.Op != "dial" || !errors.Is(err, tt.err) {
			t.Errorf("%s: %+v", tt.name, err)
		}
	}
}

// A read into a large slice must not go through a buffer.
func TestBodyGoesStraightIntoTheSlice(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 8 << 20})
	var sizes []int
	p := newPool(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &counted{nc.(*net.TCPConn), &sizes}, nil
	}, nil)
	defer p.Close()
	r := &rig{t, s, p}
	c := r.open(0)
	r.send(c, whole(r))
	response, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	const block = 256 << 10
	buf := make([]byte, block)
	left := response.Range.Len()
	for first := true; left > 0; first = false {
		n, err := response.Body.Read(buf)
		left -= int64(n)
		// The first read gets the bytes that arrived with the head, and a short rest may go through the buffer.
		due := min(block, left+int64(n))
		if asked := int64(sizes[len(sizes)-1]); !first && due >= 4<<10 && asked != due {
			t.Fatalf("a read of %d bytes asked the socket for %d", due, asked)
		}
		if err != nil && (err != io.EOF || left > 0) {
			t.Fatal(err)
		}
	}
}

// counted records how many bytes each read asks for.
type counted struct {
	*net.TCPConn
	sizes *[]int
}

func (c *counted) Read(p []byte) (int, error) {
	*c.sizes = append(*c.sizes, len(p))
	return c.TCPConn.Read(p)
}

// An answer of unknown length must not exceed its range, whatever slice it is read into.
func TestR101_NoByteBeyondTheRange(t *testing.T) {
	r := newRig(t, ot.Object{Size: 5000}, ot.InChunks(), ot.SurplusBody(100))
	c := r.open(0)
	r.send(c, later(r))
	response, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	got := 0
	for {
		n, err := response.Body.Read(buf[got:])
		got += n
		if err != nil {
			if outcome(t, err) != fault.BadRange {
				t.Error(err)
			}
			break
		}
	}
	if (response.Range != segment.Range{Start: 1000, End: 2000}) || got != 1000 {
		t.Errorf("%d bytes of %v", got, response.Range)
	}
	for i, b := range buf[got:] {
		if b != 0 {
			t.Fatalf("byte %d beyond the range was written", i)
		}
	}
}
