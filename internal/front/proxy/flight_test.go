package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/front/admission"
)

const getRequest = "GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n"

// clientHello returns the bytes of a ClientHello.
func clientHello(t *testing.T) []byte {
	near, far := net.Pipe()
	go tls.Client(near, &tls.Config{ServerName: "a.test"}).HandshakeContext(t.Context())
	defer near.Close()
	b := make([]byte, maxHello)
	n := 0
	for whole := false; !whole; whole, _ = wholeHello(b[:n]) {
		m, err := far.Read(b[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	return b[:n]
}

func TestMayRepeat(t *testing.T) {
	hello := clientHello(t)
	early := append(bytes.Clone(hello), 20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 1, 'x')
	for name, tt := range map[string]struct {
		flight []byte
		want   bool
	}{
		"R245 a ClientHello":                  {hello, true},
		"R245 part of one":                    {hello[:len(hello)-1], false},
		"R245 with early data":                {early, false},
		"R245 with part of a record":          {append(bytes.Clone(hello), 22, 3), false},
		"R245 GET":                            {[]byte(getRequest), true},
		"R245 part of a GET":                  {[]byte(getRequest[:20]), false},
		"R245 two requests":                   {[]byte(getRequest + getRequest), false},
		"R245 POST":                           {[]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), false},
		"R245 GET with content":               {[]byte("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"), false},
		"R245 an offer of another protocol":   {[]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), false},
		"R245 nothing":                        {nil, false},
		"R245 another protocol":               {[]byte("EHLO a.test\r\n"), false},
		"R245 a handshake that is not TLS's":  {[]byte{22, 3, 1, 0, 0}, false},
		"R245 a chunked GET without its body": {[]byte("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayRepeat(tt.flight); got != tt.want {
				t.Error(got)
			}
		})
	}
}

// TestFlight: a tunnel whose first bytes get no answer over one link continues over another, if they may be sent twice.
func TestFlight(t *testing.T) {
	const sent, answer = getRequest, "HTTP/1.1 200 OK\r\n\r\nhello"
	for name, tt := range map[string]struct {
		sent         string
		answers      time.Duration // of the first link; 0 = never
		second       bool          // there is another link
		breaks       bool          // the first link resets the connection
		want         string        // at the client
		link         string        // at the end
		dials        int
		after, until time.Duration
	}{
		"R245 moves":                     {sent, 0, true, false, answer, "lte", 1, unanswered, 4 * time.Second},
		"R245 stays where it answers":    {sent, time.Second, true, false, answer, "wifi", 0, time.Second, 2 * time.Second},
		"R245 the first one wins late":   {sent, unanswered + 10*time.Millisecond, true, false, answer, "wifi", 1, unanswered, 4 * time.Second},
		"R245 no other link":             {sent, 6 * time.Second, false, false, answer, "wifi", 1, 6 * time.Second, 7 * time.Second},
		"R245 no request to send twice":  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 5 * time.Second, true, false, answer, "wifi", 0, 5 * time.Second, 6 * time.Second},
		"R245 the server speaks first":   {"", 5 * time.Second, true, false, answer, "wifi", 0, 5 * time.Second, 6 * time.Second},
		"R245 an error reaches a client": {sent, time.Second, true, true, "", "wifi", 0, time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, near := net.Pipe()
				serve := func(c net.Conn, after time.Duration) {
					defer c.Close()
					b := make([]byte, 1<<10)
					if tt.sent != "" {
						if n, err := c.Read(b); err != nil || string(b[:n]) != tt.sent {
							t.Errorf("%q, %v", b[:n], err)
						}
					}
					if time.Sleep(after); !tt.breaks {
						io.WriteString(c, answer)
					}
				}
				origin, first := net.Pipe()
				stall := tt.answers
				if stall == 0 {
					stall = time.Hour
				}
				go serve(first, stall)
				ts := newTunnels(nil)
				tun, f := ts.add(origin, "wifi", &client0)
				if f != nil {
					t.Fatal(f)
				}
				dials := 0
				tun.again = func(_ context.Context, avoid string) (net.Conn, string, error) {
					if dials++; avoid != "wifi" {
						t.Error(avoid)
					}
					if !tt.second {
						return nil, "", errors.New("no other link")
					}
					other, second := net.Pipe()
					go serve(second, 100*time.Millisecond)
					return other, "lte", nil
				}
				start := time.Now()
				var got []byte
				var took time.Duration
				var reader sync.WaitGroup
				reader.Go(func() {
					if tt.sent != "" {
						io.WriteString(client, tt.sent)
					}
					b := make([]byte, 1<<10)
					n, _ := client.Read(b)
					got, took = b[:n], time.Since(start)
					client.Close()
				})
				p := &Proxy{tunnels: ts}
				p.Log = slog.New(slog.DiscardHandler)
				p.buffers.New = func() any { b := make([]byte, copyBuffer); return &b }
				p.runTunnel(tun, near, nil)
				reader.Wait()
				if string(got) != tt.want || tun.link != tt.link || dials != tt.dials || took < tt.after || took > tt.until {
					t.Errorf("%q over %s after %v, %d more dials", got, tun.link, took, dials)
				}
				ts.remove(tun)
				time.Sleep(2 * time.Hour) // the silent server gives up
			})
		})
	}
}

var client0 = client{user: admission.Unknown}
