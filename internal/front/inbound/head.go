package inbound

import (
	"bytes"
	"slices"
	"strings"
)

// head follows the heads of requests in a stream of bytes. It escapes each percent sign in a target that does not begin
// an escape, since net/http refuses such targets, and knows how to undo that. After a request with content, or with
// another protocol behind it, it lets everything pass: net/http knows where the next request begins, and a mistake here
// would change content.
type head struct {
	part   part
	last   bool   // this is the last head that is followed
	word   []byte // beginning of the line: the method, or the name of a field in lower case
	named  bool   // word is complete
	length int    // bytes of the line so far, escapes included
	start  int    // where the target begins in the line
	held   []byte // a percent sign, with at most one byte behind it, that may begin an escape
	added  []int  // where in the line "25" was added
}

type part uint8

const (
	requestLine part = iota
	fields
	rest // everything passes
)

// longestName is the length of the longest name that matters: transfer-encoding.
const longestName = 17

// take processes bytes. out are those to deliver now, up to the end of a head; more are those behind them. Both may be
// parts of b.
func (h *head) take(b []byte) (out, more []byte) {
	if h.part == rest {
		return b, nil
	}
	i := 0
	if h.part == requestLine {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			end = len(b)
		}
		out, i = h.line(b[:end]), end
		if b[end-1] != '\n' {
			return out, nil
		}
		h.begin(fields)
	}
	changed := out != nil && (len(out) != i || &out[0] != &b[0])
	from := i
	for ; i < len(b) && h.part == fields; i++ {
		h.field(b[i])
	}
	if h.part == rest {
		i = len(b)
	}
	if changed {
		return append(out, b[from:i]...), b[i:]
	}
	return b[:i], b[i:]
}

// begin starts a line.
func (h *head) begin(p part) { h.part, h.word, h.named, h.length = p, h.word[:0], false, 0 }

// line processes bytes of a request line and returns those to deliver, b itself if nothing changes.
func (h *head) line(b []byte) []byte {
	if h.length == 0 && len(h.held) == 0 {
		h.added, h.start = nil, 0
	}
	if len(h.held) == 0 && bytes.IndexByte(b, '%') < 0 {
		for _, c := range b {
			h.count(c)
		}
		return b
	}
	all := append(h.held, b...)
	h.held = nil
	out := make([]byte, 0, len(all)+8)
	for i, c := range all {
		if c == '%' && h.start > 0 {
			tail := all[i+1:]
			if len(tail) < 2 && (len(tail) == 0 || hex(tail[0])) {
				h.held = slices.Clone(all[i:])
				break
			}
			if !hex(tail[0]) || !hex(tail[1]) {
				out = append(out, "%25"...)
				h.added = append(h.added, h.length+1)
				h.length += len("%25")
				continue
			}
		}
		out = append(out, c)
		h.count(c)
	}
	return out
}

// count records a byte of the request line.
func (h *head) count(c byte) {
	h.length++
	if h.start > 0 {
		return
	}
	if c == ' ' {
		h.start = h.length
		h.last = string(h.word) == "CONNECT"
	} else if len(h.word) < longestName {
		h.word = append(h.word, c)
	}
}

// field processes a byte of the field lines.
func (h *head) field(c byte) {
	h.length++
	switch {
	case c == '\n' && (h.length == 1 || h.length == 2 && string(h.word) == "\r"):
		h.begin(requestLine)
		if h.last {
			h.part = rest
		}
	case c == '\n':
		h.begin(fields)
	case c == ':' && !h.named:
		h.named = true
		switch strings.TrimSpace(string(h.word)) {
		case "content-length", "transfer-encoding", "upgrade":
			h.last = true
		}
	case !h.named && len(h.word) <= longestName:
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h.word = append(h.word, c)
	}
}

// original returns a function that removes the escapes from the target of the latest request line, nil if it has none.
func (h *head) original() func(target string) string {
	if len(h.added) == 0 {
		return nil
	}
	start, added := h.start, h.added
	return func(target string) string {
		var b strings.Builder
		from := 0
		for _, at := range added {
			if at -= start; at < from || at+2 > len(target) || target[at:at+2] != "25" {
				return target // net/http found another target: it cannot be the one
			}
			b.WriteString(target[from:at])
			from = at + 2
		}
		return b.String() + target[from:]
	}
}

func hex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
