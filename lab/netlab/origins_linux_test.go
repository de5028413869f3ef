package netlab

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"
)

// answerOf reads the answer to a GET from a connection.
func answerOf(t *testing.T, in *bufio.Reader) (*http.Response, []byte, error) {
	t.Helper()
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

func TestOrigins(t *testing.T) {
	l := start(t, Scenario{Links: []LinkSpec{Symmetric("wifi", 100*Mbit, 4*time.Millisecond)}})
	dial := func(t *testing.T, port int) (net.Conn, *bufio.Reader) {
		t.Helper()
		conn, err := l.Link("wifi").DialContext(t.Context(), "tcp", fmt.Sprintf("%s:%d", OriginAddr, port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		return conn, bufio.NewReader(conn)
	}
	request := func(o Object, from, to int) string {
		return fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: origin\r\nRange: bytes=%d-%d\r\n\r\n", o.Size, from, to)
	}

	t.Run("Apache closes after 100 requests", func(t *testing.T) {
		if _, err := exec.LookPath("apache2"); err != nil {
			t.Skip("apache2 is not installed: apt-get install apache2-bin")
		}
		a, err := l.StartApache(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o, err := a.Object(1000)
		if err != nil {
			t.Fatal(err)
		}
		conn, in := dial(t, apachePort)
		for n := 1; ; n++ {
			if _, err := io.WriteString(conn, request(o, 10, 19)); err != nil {
				t.Fatal(err)
			}
			res, body, err := answerOf(t, in)
			if err != nil || res.StatusCode != http.StatusPartialContent || len(body) != 10 {
				t.Fatalf("request %d: %v, %v", n, res, err)
			}
			if res.Close {
				if n != 101 { // the first and 100 more
					t.Errorf("closed after %d requests", n)
				}
				break
			}
		}
		requests, err := a.Requests()
		if age := time.Since(requests[0].Began); age < 0 || age > time.Minute {
			t.Errorf("the first request began %v ago", age)
		}
		if err != nil || len(requests) < 100 {
			t.Fatalf("%d requests, %v", len(requests), err)
		}
		first, last := requests[0], requests[len(requests)-1]
		if first.Client != l.Link("wifi").Addr().String() || first.Connection != last.Connection || first.Range != "bytes=10-19" {
			t.Errorf("%+v", first)
		}
	})

	t.Run("an origin that breaks under pipelining", func(t *testing.T) {
		b, err := l.StartBrokenPipe()
		if err != nil {
			t.Fatal(err)
		}
		o, err := b.Object(2_000_000)
		if err != nil {
			t.Fatal(err)
		}
		conn, in := dial(t, brokenPipePort)
		for range 2 { // one request after the other is allowed
			if _, err := io.WriteString(conn, request(o, 0, int(o.Size)-1)); err != nil {
				t.Fatal(err)
			}
			res, body, err := answerOf(t, in)
			sum := sha256.Sum256(body)
			if err != nil || res.Header.Get("Last-Modified") == "" || hex.EncodeToString(sum[:]) != o.SHA256 {
				t.Fatalf("%v, %d bytes, %v", res, len(body), err)
			}
		}
		large, err := b.Object(24_000_000) // more than the buffers of both ends hold, so the answer has not ended yet
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request(large, 0, int(large.Size)-1)); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Peek(1); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request(large, 0, 9)); err != nil {
			t.Fatal(err)
		}
		if _, body, err := answerOf(t, in); err == nil {
			t.Errorf("a second request on the way was answered after %d bytes of the first", len(body))
		}
		requests, err := b.Requests()
		if err != nil || len(requests) != 3 || requests[0].Connection != requests[2].Connection {
			t.Errorf("%+v, %v", requests, err)
		}
	})
}
