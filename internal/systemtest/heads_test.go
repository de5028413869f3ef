package systemtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// saying starts an origin that sends the same answer to each request, byte for byte, and closes the connection.
func saying(t *testing.T, answer string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for br := bufio.NewReader(c); ; { // a connection that ends unannounced may be in use for the next request
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// hears sends a request through a proxy and returns all response heads, the final one last.
func hears(t *testing.T, proxy *url.URL, request string) (heads []string) {
	t.Helper()
	c, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	go func() { _, _ = io.WriteString(c, request) }()
	br := bufio.NewReader(c)
	for {
		var head strings.Builder
		for {
			line, err := br.ReadString('\n')
			head.WriteString(line)
			if err != nil {
				t.Fatalf("after %d heads: %.300q, %v", len(heads), head.String(), err)
			}
			if line == "\r\n" {
				break
			}
		}
		heads = append(heads, head.String())
		if !strings.HasPrefix(head.String(), "HTTP/1.1 1") {
			return heads
		}
	}
}

// TestOriginHeads: heads that net/http presents differently from how they arrived.
func TestOriginHeads(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
	hint := func(size int) string {
		return "HTTP/1.1 103 Early Hints\r\nLink: <" + strings.Repeat("a", size) + ">\r\n\r\n"
	}
	for _, tt := range []struct {
		name   string
		answer string
		status string
		absent []string // from all heads
		holds  string   // one of the heads
	}{
		{"R19 nominated beside close", ok + "Connection: close, X-Internal\r\nX-Internal: 1\r\n\r\nok", "200", []string{"x-internal"}, ""},
		{"R19 on a line after close", ok + "connection: close\r\nX-Internal: 1\r\nConnection: x-internal\r\n\r\nok", "200", []string{"x-internal"}, ""},
		{"R19 on a folded line", ok + "X-Internal: 1\r\nConnection: close,\r\n x-internal\r\n\r\nok", "200", []string{"x-internal"}, ""},
		{"R19 by HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close, X-Internal\r\nX-Internal: 1\r\n\r\nok", "200", []string{"x-internal"}, ""},
		{"R19 not nominated", ok + "Connection: close\r\nX-Internal: 1\r\n\r\nok", "200", nil, "X-Internal: 1\r\n"},
		{
			"R19 in an interim answer", "HTTP/1.1 103 Early Hints\r\nConnection: close, X-Internal\r\nX-Internal: 1\r\nLink: <a>\r\n\r\n" + ok + "\r\nok",
			"200",
			[]string{"x-internal"},
			"Link: <a>\r\n",
		},
		{"R44 space before a colon", ok + "X : y\r\n\r\nok", "502", nil, ""},
		{"R44 chunks behind a space", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "502", nil, ""},
		{"R44 in an interim answer", "HTTP/1.1 103 Early Hints\r\nX : y\r\n\r\n" + ok + "\r\nok", "502", nil, ""},
		{"R236 a name with spaces", ok + "X Powered By: y\r\nX-Other: z\r\n\r\nok", "200", []string{"powered"}, "X-Other: z\r\n"},
		{"R236 no colon, nominated beside it", ok + "no colon\r\nConnection: close, X-Internal\r\nX-Internal: 1\r\n\r\nok", "200", []string{"x-internal", "colon"}, ""},
		{"R236 in an interim answer", "HTTP/1.1 103 Early Hints\r\nX Y: z\r\nLink: <a>\r\n\r\n" + ok + "\r\nok", "200", []string{"x y"}, "Link: <a>\r\n"},
		{"R236 a length with a space in its name", "HTTP/1.1 200 OK\r\nContent Length: 2\r\n\r\nok", "502", nil, ""},
		{"R236 ICY", "ICY 200 OK\r\nicy-name: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "200", nil, "Icy-Name: x\r\n"},
		{"R235 chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "200", nil, ""},
		{"R235 chunks in HTTP/1.0, and a length", "HTTP/1.0 200 OK\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "502", nil, ""},
		{"another protocol", "SSH-2.0-x\r\n", "502", nil, ""},
		{"R30 Pragma alone", ok + "Pragma: no-cache\r\n\r\nok", "200", []string{"cache-control"}, "Pragma: no-cache\r\n"},
		{"R36 200 KiB of interim answers", strings.Repeat(hint(8<<10), 25) + ok + "\r\nok", "200", nil, ""},
		{"R36 300 KiB of interim answers", strings.Repeat(hint(12<<10), 25) + ok + "\r\nok", "502", nil, ""},
		{"R36 300 KiB with the final one", strings.Repeat(hint(8<<10), 25) + ok + "X: " + strings.Repeat("a", 100<<10) + "\r\n\r\nok", "502", nil, ""},
		{"R36 33 interim answers", strings.Repeat(hint(10), 33) + ok + "\r\nok", "502", nil, ""},
		{"R36 a head of 300 KiB", ok + "X: " + strings.Repeat("a", 300<<10) + "\r\n\r\nok", "502", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := saying(t, tt.answer)
			proxy := proxied(t, addr)
			for _, form := range []string{
				"GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n",
				"GET http://%s/ HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
				"POST http://%s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
			} {
				request := fmt.Sprintf(form, addr)
				heads := hears(t, proxy, request)
				all := strings.Join(heads, "")
				if last := heads[len(heads)-1]; !strings.HasPrefix(last, "HTTP/1.1 "+tt.status+" ") || !strings.Contains(all, tt.holds) {
					t.Errorf("%.30q: %d heads, the last %.300q", request, len(heads), last)
				}
				for _, name := range tt.absent {
					if strings.Contains(strings.ToLower(all), name) {
						t.Errorf("%.30q: %s in %.400q", request, name, all)
					}
				}
			}
		})
	}
}
