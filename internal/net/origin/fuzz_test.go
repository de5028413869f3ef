package origin

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// FuzzR202_Answers: whatever an origin sends, there is no panic, errors are typed, an accepted range is one that was requested, and
// its body has no more bytes than the range.
func FuzzR202_Answers(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 206 OK\r\nETag: \"a\"\r\nContent-Range: bytes 100-104/1000\r\nContent-Length: 5\r\n\r\nhello" +
			"HTTP/1.1 206 OK\r\nETag: \"a\"\r\nContent-Range: bytes 200-201/1000\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
		"HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.0 206 OK\r\nTransfer-Encoding: chunked\r\nETag: \"a\"\r\nContent-Range: bytes 100-102/1000\r\n\r\nabcdef",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 503 x\r\nRetry-After: 99999999999\r\nPragma: no-cache\r\nContent-Length: 0\r\n\r\n\x00",
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, sent []byte, known bool) {
		near, far := net.Pipe()
		defer near.Close()
		go func() { // ends with the pipe
			go io.Copy(io.Discard, far)
			far.Write(sent)
			far.Close()
		}()
		p := New(nil)
		defer p.Close()
		s, _ := held(key{link: "w0"})
		s.socket, s.conn, s.wire.conn = near, near, near
		c := newConn(p, s, false)
		defer c.Close()
		asks := []engine.RangeRequest{
			{Target: engine.Target{Host: "h", Path: "/"}, Range: segment.Range{Start: 100, End: 200}},
			{Target: engine.Target{Host: "h", Path: "/"}, Range: segment.Range{Start: 200, End: 300}},
		}
		typed := func(err error) {
			var a *engine.AttemptError
			if !errors.As(err, &a) {
				t.Fatalf("%v is no AttemptError", err)
			}
		}
		for i := range asks {
			if known {
				asks[i].Want = &engine.Identity{Total: 1000, Validator: strong, ETag: strong}
			}
			if err := c.Send(asks[i]); err != nil {
				typed(err)
				return
			}
		}
		for _, a := range asks {
			response, err := c.Next()
			if err != nil {
				typed(err)
				return
			}
			if response.StatusCode == 206 && (response.Range.Start != a.Range.Start || response.Range.End > a.Range.End || response.Range.Empty()) {
				t.Fatalf("asked for %v, got %v", a.Range, response.Range)
			}
			if known && (response.StatusCode != 206 || response.ID != *a.Want) {
				t.Fatalf("accepted %d of %+v", response.StatusCode, response.ID)
			}
			n, err := io.Copy(io.Discard, response.Body)
			if err != nil {
				typed(err)
			}
			if response.Range.End >= 0 && (n > response.Range.Len() || err == nil && n != response.Range.Len()) {
				t.Fatalf("%d bytes for %v, %v", n, response.Range, err)
			}
			if err != nil {
				return
			}
		}
	})
}
