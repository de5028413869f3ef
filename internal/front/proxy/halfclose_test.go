package proxy_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestClientsThatSendNoMore: they get the whole answer, as from the origin.
func TestClientsThatSendNoMore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	const size = 1 << 20
	body := strings.Repeat("x", size)
	t.Run("R241 requests to the proxy", func(t *testing.T) {
		g := start(t)
		o, heads := answer(t, "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"+body)
		for _, request := range []string{
			"GET " + o.url("/100%") + " HTTP/1.1\r\nHost: o\r\n\r\n",
			"GET " + o.url("/100%") + " HTTP/1.0\r\n\r\n",
			"POST " + o.url("/100%") + " HTTP/1.1\r\nHost: o\r\nContent-Length: 3\r\n\r\nabc",
		} {
			nc, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, request); err != nil {
				t.Fatal(err)
			}
			if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(nc)
			if err != nil || len(b) < size || !strings.Contains(string(b[:20]), " 200 OK\r\n") {
				t.Errorf("%.10q: %d bytes, %v: %.100q", request, len(b), err, b)
			}
			if head := <-heads; !strings.Contains(head, " /100% HTTP/1.1\r\n") {
				t.Errorf("the origin saw %q", head)
			}
		}
	})
	t.Run("R241 requests in an opened tunnel", func(t *testing.T) {
		o := opens(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }, nil)
		nc := o.must(o.trusting("http/1.1"))
		if _, err := io.WriteString(nc, "GET /a HTTP/1.1\r\nHost: "+openedHost+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(nc)
		if err != nil || len(b) < size {
			t.Errorf("%d bytes, %v: %.100q", len(b), err, b)
		}
	})
}
