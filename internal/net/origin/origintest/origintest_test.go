package origintest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// dial connects to a node; the test closes the connection.
func dial(t *testing.T, s *origintest.Server, node int) (net.Conn, *bufio.Reader) {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr(node))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc, bufio.NewReader(nc)
}

func get(fields string) string { return "GET /object HTTP/1.1\r\nHost: o\r\n" + fields + "\r\n" }

func answer(t *testing.T, br *bufio.Reader) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, b
}

func TestObject(t *testing.T) {
	o := origintest.Object{Size: 1000, Seed: 7}
	whole := o.Bytes(0, o.Size)
	for start := int64(0); start < 40; start++ {
		part := make([]byte, 25)
		if n, err := o.ReadAt(part, start); n != len(part) || err != nil {
			t.Fatalf("ReadAt(%d) = %d, %v", start, n, err)
		}
		if !bytes.Equal(part, whole[start:start+25]) || o.Mismatch(part, start) != -1 {
			t.Fatalf("bytes at %d differ", start)
		}
		part[3] ^= 1
		if got := o.Mismatch(part, start); got != start+3 {
			t.Fatalf("Mismatch = %d, want %d", got, start+3)
		}
	}
	if n, err := o.ReadAt(make([]byte, 10), 995); n != 5 || err != io.EOF {
		t.Errorf("ReadAt at the end = %d, %v", n, err)
	}
	if got := o.Mismatch(o.Bytes(990, 1010), 990); got != 1000 {
		t.Errorf("bytes beyond the end: Mismatch = %d, want 1000", got)
	}
	other := o
	other.Seed++
	if other.SHA256() == o.SHA256() {
		t.Error("two seeds, one hash")
	}
}

func TestCorrectServer(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 1000})
	o := s.Object()
	nc, br := dial(t, s, 0)
	tests := []struct {
		fields     string
		status     int
		start, end int64
		content    string
	}{
		{"", 200, 0, 1000, ""},
		{"Range: bytes=10-19\r\n", 206, 10, 20, "bytes 10-19/1000"},
		{"Range: bytes=990-2000\r\n", 206, 990, 1000, "bytes 990-999/1000"},
		{"Range: bytes=-5\r\n", 206, 995, 1000, "bytes 995-999/1000"},
		{"Range: bytes=0-1,5-6\r\n", 200, 0, 1000, ""},
		{"Range: bytes=1000-\r\n", 416, 0, 0, "bytes */1000"},
		{"Range: bytes=1-2\r\nIf-Range: \"v1\"\r\n", 206, 1, 3, "bytes 1-2/1000"},
		{"Range: bytes=1-2\r\nIf-Range: \"v2\"\r\n", 200, 0, 1000, ""},
		{"If-None-Match: \"v1\"\r\n", 304, 0, 0, ""},
	}
	for _, tt := range tests { // all in one go: pipelined
		fmt.Fprint(nc, get(tt.fields))
	}
	for i, tt := range tests {
		resp, b := answer(t, br)
		if resp.StatusCode != tt.status || resp.Header.Get("Content-Range") != tt.content {
			t.Errorf("%q: %d, %q", tt.fields, resp.StatusCode, resp.Header.Get("Content-Range"))
		}
		if !bytes.Equal(b, o.Bytes(tt.start, tt.end)) {
			t.Errorf("%q: wrong bytes", tt.fields)
		}
		r := s.Requests()[i]
		if r.N != i+1 || r.Seq != i+1 || r.Conn != 1 || r.Nth != i+1 || r.Raw != get(tt.fields) || r.Node != 0 {
			t.Errorf("recorded %+v", r)
		}
	}
}

func TestContentIsRead(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 3})
	nc, br := dial(t, s, 1)
	fmt.Fprint(nc, "POST / HTTP/1.1\r\nHost: o\r\nContent-Length: 5\r\n\r\nhello")
	fmt.Fprint(nc, "PUT / HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
	fmt.Fprint(nc, get(""))
	for range 3 {
		answer(t, br)
	}
	rs := s.Requests()
	if string(rs[0].Body) != "hello" || string(rs[1].Body) != "ab" || rs[2].Method != "GET" || rs[2].Node != 1 {
		t.Errorf("recorded %+v", rs)
	}
}

func TestNodesDiffer(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 100}, origintest.OnNode(1, origintest.NewVersion()))
	for node, tag := range []string{`"v1"`, `"v2-v1"`} {
		nc, br := dial(t, s, node)
		fmt.Fprint(nc, get(""))
		resp, b := answer(t, br)
		if resp.Header.Get("ETag") != tag || (s.Object().Mismatch(b, 0) == -1) != (node == 0) {
			t.Errorf("node %d: ETag %s", node, resp.Header.Get("ETag"))
		}
		if s.Sent(node) != 100 {
			t.Errorf("node %d sent %d bytes", node, s.Sent(node))
		}
	}
}

func TestOutOfOrder(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 100}, origintest.OnSeq(1, origintest.OutOfOrder()))
	nc, br := dial(t, s, 0)
	fmt.Fprint(nc, get("Range: bytes=0-9\r\n")+get("Range: bytes=10-19\r\n")+get("Range: bytes=20-29\r\n"))
	for _, want := range []string{"bytes 10-19/100", "bytes 0-9/100", "bytes 20-29/100"} {
		if resp, _ := answer(t, br); resp.Header.Get("Content-Range") != want {
			t.Errorf("%s, want %s", resp.Header.Get("Content-Range"), want)
		}
	}
}

func TestPipelinedIsSeen(t *testing.T) {
	hold := make(chan struct{})
	s := origintest.New(t, origintest.Object{Size: 100}, origintest.OnSeq(1, origintest.StallAfter(50, hold)))
	nc, br := dial(t, s, 0)
	fmt.Fprint(nc, get(""))
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(nc, get(""))
	for len(s.Requests()) < 2 { // no event reports its arrival
		runtime.Gosched()
	}
	close(hold)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	answer(t, br)
	fmt.Fprint(nc, get(""))
	answer(t, br)
	for i, want := range []bool{false, true, false} {
		if got := s.Requests()[i].Pipelined; got != want {
			t.Errorf("request %d pipelined = %v", i+1, got)
		}
	}
}

// A stalled answer, a delayed one and an idle connection must not keep the server from closing.
func TestCloseEndsEverything(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 100},
		origintest.OnConn(1, origintest.StallAfter(10, nil)), origintest.OnConn(2, origintest.SlowStart(1<<62)))
	for i := range 3 {
		nc, br := dial(t, s, 0)
		fmt.Fprint(nc, get(""))
		if i == 1 {
			continue
		}
		if _, err := http.ReadResponse(br, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
}
