package relay

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// TestCodeOf: only a relay that refuses the client's certificate needs a new pairing. All other errors that end a lane have
// another code, or may disappear by themselves.
func TestCodeOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Code
	}{
		{ErrWrongKey, CodeWrongKey},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(120)}, CodeWrongKey},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, CodeNotAccepted},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, CodeUnreachable},
		{io.EOF, CodeUnreachable},
		{io.ErrUnexpectedEOF, CodeUnreachable},
		{errEnded, CodeUnreachable},
		{errFull, CodeFull},
		{errRestarted, CodeRestarted},
	} {
		if got := codeOf(fmt.Errorf("over wifi: %w", tt.err)); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

// TestLaneCodes: the code in a link's status if the relay is full, and if another server has its address. A server that hangs
// up may be in front of the relay, and shows nothing about the pairing.
func TestLaneCodes(t *testing.T) {
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	hangsUp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangsUp.Close()
	go func() {
		for {
			c, err := hangsUp.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1)) // with bytes unread, the end would be a reset
			c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	for _, tt := range []struct {
		other net.Addr // server at the relay's address; nil = the relay itself, which is full
		want  Code
	}{{nil, CodeFull}, {web.Listener.Addr(), CodeWrongKey}, {hangsUp.Addr(), CodeUnreachable}} {
		r := newRig(t)
		if err := Enrol(t.Context(), r.client, r.invite()); err != nil {
			t.Fatal(err)
		}
		if tt.other == nil {
			r.at.closing.Store(true)
		} else {
			if _, err := change(r.client, func(s *clientState) error {
				s.Relays[tt.other.String()] = s.Relays[r.address]
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			r.address = tt.other.String()
		}
		r.connect()
		var all []LaneStatus
		r.until("both links have failed", func() bool {
			all = r.out.Status().Lanes
			return len(all) == 2 && !slices.ContainsFunc(all, func(l LaneStatus) bool { return l.Failure == "" })
		})
		if all[0].Code != tt.want || all[1].Code != tt.want {
			t.Errorf("%v: %+v, want %q", tt.other, all, tt.want)
		}
	}
}
