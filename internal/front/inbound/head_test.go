package inbound

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestHead: whatever pieces a stream of requests arrives in, the targets of those that are followed can be parsed, and get back the
// bytes of the client. Everything else keeps its bytes.
func TestHead(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		originals     []string // of each head that is followed; "" = unchanged
	}{
		{"R239 nothing to do", "GET /a%20b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a%20b HTTP/1.1\r\nHost: h\r\n\r\n", []string{""}},
		{"R239 a bare percent sign", "GET /100%.zip HTTP/1.1\r\nHost: h\r\n\r\n", "GET /100%25.zip HTTP/1.1\r\nHost: h\r\n\r\n", []string{"/100%.zip"}},
		{
			"R239 several, beside escapes", "GET http://h/%%41%4%zz%25% HTTP/1.1\r\n\r\n", "GET http://h/%25%41%254%25zz%25%25 HTTP/1.1\r\n\r\n",
			[]string{"http://h/%%41%4%zz%25%"},
		},
		{"R239 fields keep theirs", "GET / HTTP/1.1\r\nCookie: 100%\r\n\r\n", "GET / HTTP/1.1\r\nCookie: 100%\r\n\r\n", []string{""}},
		{
			"R239 one request behind another", "GET /% HTTP/1.1\n\nGET /b HTTP/1.1\r\nA: %\r\n\r\nGET /c%d%% HTTP/1.1\r\n\r\n",
			"GET /%25 HTTP/1.1\n\nGET /b HTTP/1.1\r\nA: %\r\n\r\nGET /c%25d%25%25 HTTP/1.1\r\n\r\n",
			[]string{"/%", "", "/c%d%%"},
		},
		{
			"R239 content keeps its bytes", "POST /% HTTP/1.1\r\ncontent-LENGTH: 20\r\n\r\nGET /% HTTP/1.1\r\n\r\nGET /% HTTP/1.1\r\n\r\n",
			"POST /%25 HTTP/1.1\r\ncontent-LENGTH: 20\r\n\r\nGET /% HTTP/1.1\r\n\r\nGET /% HTTP/1.1\r\n\r\n",
			[]string{"/%"},
		},
		{
			"R239 chunks keep their bytes", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4; a=%\r\nGET /% \r\n",
			"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4; a=%\r\nGET /% \r\n",
			[]string{""},
		},
		{
			"R239 a tunnel keeps its bytes", "CONNECT h:80 HTTP/1.1\r\n\r\nGET /% HTTP/1.1\r\n\r\n",
			"CONNECT h:80 HTTP/1.1\r\n\r\nGET /% HTTP/1.1\r\n\r\n",
			[]string{""},
		},
		{
			"R239 another protocol keeps its bytes", "GET /% HTTP/1.1\r\nUpgrade: websocket\r\n\r\nGET /% HTTP/1.1\r\n\r\n",
			"GET /%25 HTTP/1.1\r\nUpgrade: websocket\r\n\r\nGET /% HTTP/1.1\r\n\r\n",
			[]string{"/%"},
		},
		{"R239 not a request", "%%%\x00\r\n\r\n", "%%%\x00\r\n\r\n", []string{""}},
		{"R239 the end comes early", "GET /10%2", "GET /10", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.in); size++ {
				var h head
				var out []byte
				var originals []string
				for in := []byte(c.in); len(in) > 0; in = in[min(size, len(in)):] {
					for more := bytes.Clone(in[:min(size, len(in))]); len(more) > 0; {
						var got []byte
						before := h.part
						got, more = h.take(more)
						out = append(out, got...)
						if before != rest && (h.part == rest || h.part == requestLine && bytes.HasSuffix(out, []byte("\n"))) {
							originals = append(originals, target(&h, out))
						}
					}
				}
				if string(out) != c.out || strings.Join(originals, "|") != strings.Join(c.originals, "|") {
					t.Fatalf("in pieces of %d: %q, %q", size, out, originals)
				}
			}
		})
	}
}

// target returns the client's target of the last request in a stream, "" if it is unchanged.
func target(h *head, stream []byte) string {
	original := h.original()
	if original == nil {
		return ""
	}
	lines := strings.Split(string(stream), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if words := strings.Fields(lines[i]); len(words) == 3 && strings.HasPrefix(words[2], "HTTP/1") {
			return original(words[1])
		}
	}
	return "?"
}

// FuzzHead: what net/http understands without a head, it understands with one, and the target keeps its bytes.
func FuzzHead(f *testing.F) {
	f.Add("GET /%41 HTTP/1.1\r\nHost: h\r\n\r\n", 3)
	f.Add("GET /% HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\nGET /% HTTP/1.1", 7)
	f.Add("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n%%%GET / HTTP/1.1\r\n\r\n", 1)
	f.Fuzz(func(t *testing.T, in string, size int) {
		if size < 1 || size > len(in) {
			return
		}
		want := requests(strings.NewReader(in))
		c := &Conn{Conn: piecewise{r: strings.NewReader(in), size: size}}
		got := requests(c)
		for i, w := range want { // a target that could not be parsed may be followed by more
			if i >= len(got) || got[i] != w {
				t.Fatalf("%q is not among %q", w, got)
			}
		}
	})
}

// requests returns the requests in a stream.
func requests(r io.Reader) (all []string) {
	b := newReader(r)
	for {
		q, err := http.ReadRequest(b)
		if err != nil {
			return all
		}
		content, err := io.ReadAll(q.Body)
		if err != nil {
			return all
		}
		all = append(all, q.Method+" "+q.RequestURI+" "+string(content))
		if q.Method == http.MethodConnect || q.Header.Get("Upgrade") != "" {
			rest, _ := io.ReadAll(b)
			return append(all, string(rest))
		}
	}
}
