package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/front/cutoff"
	"github.com/tributary-http/tributary/internal/front/inbound"
	"github.com/tributary-http/tributary/internal/net/transport"
)

const (
	// unanswered is how long the first bytes of a tunnel may stay without an answer before they are sent over another
	// link, too.
	unanswered = health.BanAfter
	// flightTime is how long a tunnel is watched for its first answer.
	flightTime = 15 * time.Second
	maxFlight  = 16 << 10 // bytes of a client that are kept until then
)

// A link may carry a handshake and lose all larger packets (a path-MTU hole). So until a tunnel gets its first answer,
// its client's bytes are kept. If they may be sent twice, a second connection over another link gets them, too, and the
// one that answers first becomes the tunnel.

// redial dials the origin of a tunnel over another link than one to avoid, while it is wanted.
type redial func(wanted context.Context, avoid string) (net.Conn, string, error)

// again returns a function that dials addr over another link than that of the tunnel, and over none that costs money.
func (p *Proxy) again(ctx context.Context, addr string) redial {
	return func(wanted context.Context, avoid string) (net.Conn, string, error) {
		ctx := transport.With(ctx, func(o *transport.Options) { o.Links.Avoid, o.Links.Unmetered = avoid, true })
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(wanted, cancel)()
		return p.Transport.DialTunnel(ctx, addr)
	}
}

// mayRepeat reports whether a server may get the first bytes of a tunnel twice: a ClientHello without early data, or
// requests that change nothing (RFC 9110 section 9.2.1).
func mayRepeat(flight []byte) bool {
	if len(flight) > 0 && flight[0] == inbound.TLSHandshake {
		whole, _ := wholeHello(flight)
		for rest := flight; whole && len(rest) > 0; {
			n := tlsRecord + int(rest[3])<<8 + int(rest[4]) // wholeHello has checked the first ones
			if rest[0] != inbound.TLSHandshake || n > len(rest) {
				return false
			}
			if rest = rest[n:]; len(rest) > 0 && len(rest) < tlsRecord {
				return false
			}
		}
		return whole
	}
	r := bufio.NewReader(bytes.NewReader(flight))
	q, err := http.ReadRequest(r)
	return err == nil && (q.Method == http.MethodGet || q.Method == http.MethodHead) && q.ContentLength == 0 &&
		len(q.TransferEncoding) == 0 && q.Header.Get("Upgrade") == "" && r.Buffered() == 0
}

// first is the first answer of a connection to an origin.
type first struct {
	conn  net.Conn
	link  string
	bytes []byte
	err   error
}

func answerOf(c net.Conn, link string) first {
	b := make([]byte, 4<<10)
	n, err := c.Read(b)
	return first{c, link, b[:n], err}
}

// repeat sends a flight over another link until wanted ends.
func (t *tunnel) repeat(wanted context.Context, flight []byte) first {
	c, link, err := t.again(wanted, t.link)
	if err != nil {
		return first{err: err}
	}
	setKeepAlive(c)
	stop := context.AfterFunc(wanted, func() { cutoff.Reset(c) })
	a := first{c, link, nil, nil}
	if _, a.err = c.Write(flight); a.err == nil {
		a = answerOf(c, link)
	}
	if !stop() {
		a.err = wanted.Err()
	} else if a.err != nil {
		_ = c.Close()
	}
	return a
}

var errLong = errors.New("the flight is too long")

// flight is the first bytes of a client.
type flight struct {
	sent []byte
	err  error // nil = its reader was stopped; io.EOF = the client sends no more
}

// forward forwards the first bytes of a client, and says so on spoke.
func (t *tunnel) forward(client, origin net.Conn, early []byte, spoke chan<- struct{}) (f flight) {
	buf := make([]byte, 4<<10)
	for b := early; ; b = buf {
		if len(b) > 0 {
			f.sent = append(f.sent, b...)
			if _, f.err = origin.Write(b); f.err != nil {
				return f
			}
			t.bytes.Add(int64(len(b)))
			select {
			case spoke <- struct{}{}:
			default:
			}
		}
		if len(f.sent) > maxFlight {
			f.err = errLong
			return f
		}
		n, err := client.Read(buf[:cap(buf)])
		buf = buf[:n]
		if n == 0 && err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				f.err = err
			}
			return f
		}
	}
}

// begin forwards the client's first bytes until there is an answer, and returns it. The tunnel's link may have changed
// then.
func (t *tunnel) begin(ts *tunnels, client, origin net.Conn, early []byte) (answer []byte) {
	wanted, cancel := context.WithCancel(t.cut)
	defer cancel()
	spoke, flown := make(chan struct{}, 1), make(chan flight, 1)
	go func() { flown <- t.forward(client, origin, early, spoke) }()
	answers, waiting := make(chan first, 2), 1
	go func() { answers <- answerOf(origin, t.link) }()
	flying := true
	stop := func() (f flight) {
		_ = client.SetReadDeadline(time.Unix(1, 0))
		f = <-flown
		_ = client.SetReadDeadline(time.Time{})
		flying = false
		return f
	}
	quiet, over := time.NewTimer(unanswered), time.NewTimer(flightTime)
	defer quiet.Stop()
	defer over.Stop()
	var f flight
	var got first
	for done := false; !done; {
		select {
		case got = <-answers:
			waiting--
			if done = got.conn == origin || got.err == nil; !done {
				got = first{} // there is no other link, or it does not answer either
			}
		case f = <-flown:
			flying, done = false, true
		case <-spoke:
			quiet.Reset(unanswered)
		case <-quiet.C:
			if f = stop(); f.err == nil && mayRepeat(f.sent) {
				waiting++
				go func() { answers <- t.repeat(wanted, f.sent) }()
			} else {
				done = true
			}
		case <-over.C:
			done = true
		case <-t.cut.Done():
			done = true
		}
	}
	if flying {
		f = stop()
	}
	moved := got.conn != nil && got.conn != origin
	if moved {
		cutoff.Reset(origin)
	} else {
		_ = origin.SetReadDeadline(time.Unix(1, 0))
		cancel()
	}
	for ; waiting > 0; waiting-- {
		switch a := <-answers; {
		case a.conn == origin && !moved:
			got = a
		case a.conn != origin && a.err == nil:
			cutoff.Reset(a.conn)
		}
	}
	if moved {
		ts.mu.Lock()
		t.origin, t.link = got.conn, got.link
		ts.mu.Unlock()
	} else {
		_ = origin.SetReadDeadline(time.Time{})
	}
	for _, err := range []error{f.err, got.err} { // the kernel reports errors once
		if err != nil && err != io.EOF && err != errLong && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.reset()
		}
	}
	return got.bytes
}
