package proxy_test

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/front/proxy"
)

// TestClearTunnel: requests in a tunnel that was sniffed are served as those to the proxy, whether the first one came with the CONNECT or
// later.
func TestClearTunnel(t *testing.T) {
	sniffing := func(c *proxy.Config) { c.Untrusted = func() bool { return true } }
	for name, first := range map[string]int{"with the CONNECT": 1000, "later": 0, "partly with the CONNECT": 2} {
		const request = "GET / HTTP/1.0\r\n\r\n"
		cut := min(first, len(request))
		t.Run("R49 a response that breaks off is reset, the request came "+name, func(t *testing.T) {
			g := start(t, sniffing)
			broken := make(chan struct{})
			breakOff := sync.OnceFunc(func() { close(broken) })
			defer breakOff()
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
				<-broken
			})
			c := g.tunnelTo(o, request[:cut])
			c.send(request[cut:])
			c.wantHead("200")
			c.want("abc")
			breakOff()
			if _, err := c.rest(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("end of the connection: %v, want a reset", err)
			}
		})
		t.Run("R241 a client that sends no more, the request came "+name, func(t *testing.T) {
			g := start(t, sniffing)
			ended := make(chan struct{})
			o := serve(t, func(c *conn) {
				_, _ = c.head()
				<-ended
				c.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
			})
			c := g.tunnelTo(o, request[:cut])
			c.send(request[cut:])
			_ = c.CloseWrite()
			close(ended)
			if rest, err := c.rest(); err != nil || !strings.HasSuffix(rest, "\r\n\r\nabc") {
				t.Errorf("read %q, %v", rest, err)
			}
		})
	}
}
