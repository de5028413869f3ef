package origin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestRepair: what happens to odd heads. Of the lines that are left out, none decides where the content ends or how it is read.
func TestRepair(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct{ name, raw, want string }{ // want "" = it is refused
		{"unchanged", ok + "A: b\r\n c\r\nD:\te\xff\r\n\r\n", ok + "A: b\r\n c\r\nD:\te\xff\r\n\r\n"},
		{"unchanged without CR", "HTTP/1.0 200\nA: b\n\n", "HTTP/1.0 200\nA: b\n\n"},
		{"R236 a space in a name", ok + "A: b\r\nX Powered By: c\r\nD: e\r\n\r\n", ok + "A: b\r\nD: e\r\n\r\n"},
		{"R236 a line that continues one", ok + "A: b\r\nX Y: c\r\n d\r\n\te: f\r\nD: e\r\n\r\n", ok + "A: b\r\nD: e\r\n\r\n"},
		{"R236 hyphens that are not ASCII", ok + "Strict\u2010Transport\u2010Security: max-age=1\r\nD: e\r\n\r\n", ok + "D: e\r\n\r\n"},
		{"R236 brackets in a name", ok + "X-Cache(a): hit\r\n\r\n", ok + "\r\n"},
		{"R236 no name", ok + ": b\r\nD: e\r\n\r\n", ok + "D: e\r\n\r\n"},
		{"R236 a control character", ok + "X-Note: a\x01b\r\n\r\n", ok + "\r\n"},
		{"R236 no colon", ok + "Content-Disposition = attachment\r\n\r\n", ok + "\r\n"},
		{"R236 ICY", "ICY 200 OK\r\nicy-name: a\r\n\r\n", "HTTP/1.0 200 OK\r\nicy-name: a\r\n\r\n"},
		{"R236 icy", "icy 200 OK\r\n\r\n", ""},
		{"R236 a length that is not ASCII", ok + "Content\u2010Length: 5\r\n\r\n", ""},
		{"R236 a length with a space in it", ok + "Content Length: 5\r\n\r\n", ""},
		{"R236 a length without a colon", ok + "Content-Length 5\r\n\r\n", ""},
		{"R236 a length with a control character", ok + "Content-Length: 5\x01\r\n\r\n", ""},
		{"R236 a coding with a control character in its name", ok + "\x0bTransfer-Encoding: chunked\r\n\r\n", ""},
		{"R236 a coding of the content", ok + "Content-Encoding: gz\x01ip\r\n\r\n", ""},
		{"R236 a range", ok + "Content(Range): bytes 1-2/3\r\n\r\n", ""},
		{"R236 Location", ok + "Location: /a\x01\r\n\r\n", ""},
		{"R44 a space before a colon", ok + "X : y\r\n\r\n", ""},
		{"R44 a tab before a colon", ok + "X\t: y\r\n\r\n", ""},
		{"R44 a line break before a colon", ok + "X\r\n : y\r\n\r\n", ""},
		{"R44 a space before the first name", ok + " X: y\r\n\r\n", ""},
		{"R44 NUL", ok + "X: a\x00b\r\n\r\n", ""},
		{"R44 NUL in a bad line", ok + "X(): a\x00b\r\n\r\n", ""},
		{"R44 a bare CR", ok + "X: a\rb\r\n\r\n", ""},
		{"R44 a bare CR at the end", ok + "X: y\r\n\r\r\n\r\n", ""},
		{"R235 chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", ok + "Connection: close\r\nTransfer-Encoding: Chunked\r\n\r\n"},
		{"R235 chunks after ICY", "ICY 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ok + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"R235 chunks in an earlier version", "HTTP/0.9 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ok + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"R235 with a length", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", ""},
		{"R235 another coding", "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", ""},
		{"R39 two codings", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"no status", "HTTP/1.1 OK\r\n\r\n", ""},
		{"another protocol", "SSH-2.0-x\r\n", ""},
		{"an empty line", "\r\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := intake{raw: []byte(c.raw)}
			head, err := in.head()
			if err == nil && c.want != "" && len(head) != len(c.raw) {
				t.Fatalf("the head has %d of %d bytes", len(head), len(c.raw))
			}
			if err == nil {
				head, err = repair(head)
			}
			if c.want == "" {
				if !errors.Is(err, ErrMalformed) {
					t.Errorf("%q, %v", head, err)
				}
			} else if err != nil || string(head) != c.want {
				t.Errorf("%q, %v; want %q", head, err, c.want)
			}
		})
	}
}

// FuzzR044_R235_R236_Repair: where a head ends never depends on how its bytes arrive. A head that net/http reads by itself is refused,
// or means the same after it was repaired, except that chunks in HTTP/1.0 are chunks.
func FuzzR044_R235_R236_Repair(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n c\r\n\r\nhello", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"ICY 200 OK\nA b: c\n\nx", "HTTP/1.1 200\r\nA : b\r\n: c\r\nD\r\n\r\n", "HTTP/1.1 304 x\r\nX\x01: y\r\nY: \x01\r\n\r\n",
	} {
		f.Add([]byte(s), uint16(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		whole := intake{raw: b}
		head, err := whole.head()
		parts := intake{raw: bytes.Clone(b[:min(int(at), len(b))])}
		first, firstErr := parts.head()
		if first == nil && firstErr == nil {
			parts.raw = append(parts.raw, b[min(int(at), len(b)):]...)
			first, firstErr = parts.head()
		}
		if !bytes.Equal(head, first) || (err == nil) != (firstErr == nil) {
			t.Fatalf("%q, %v; in two parts %q, %v", head, err, first, firstErr)
		}
		if head == nil || err != nil {
			return
		}
		head = bytes.Clone(head)
		repaired, err := repair(head)
		if err != nil {
			return
		}
		br := bufio.NewReader(bytes.NewReader(repaired))
		got, err := http.ReadResponse(br, nil)
		if err != nil {
			return
		}
		if rest, _ := io.ReadAll(br); len(rest) > 0 {
			t.Errorf("net/http ends the head of %q before %q", repaired, rest)
		}
		want, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), nil)
		if err != nil || strings.Contains(strings.ToLower(string(head)), "transfer-encoding") && !got.ProtoAtLeast(1, 1) {
			return
		}
		if got.TransferEncoding != nil && want.TransferEncoding == nil {
			if want.ProtoAtLeast(1, 1) || !got.Close {
				t.Errorf("%q has chunks: %+v", repaired, got)
			}
			return
		}
		same := maps.EqualFunc(got.Header, want.Header, slices.Equal)
		if !same {
			for name := range want.Header { // net/http accepts spaces in names
				if strings.Contains(name, " ") {
					delete(want.Header, name)
				}
			}
			same = maps.EqualFunc(got.Header, want.Header, slices.Equal)
		}
		if !same || got.ContentLength != want.ContentLength || got.StatusCode != want.StatusCode || got.Close != want.Close {
			t.Errorf("%q: %+v, want %+v", repaired, got, want)
		}
	})
}
