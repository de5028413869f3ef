package origin

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ErrMalformed means that a response breaks the rules of HTTP so that its meaning, or its end, is not certain.
var ErrMalformed = errors.New("malformed response")

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// intake cuts heads out of the bytes that arrive on a connection. A head is handed on only as a whole, since the last
// of its lines may decide how the others are read.
type intake struct {
	raw    []byte // received, from the beginning of a head on
	line   int    // where the current line begins
	looked int    // how much of raw has been looked at
}

// head returns the complete head at the beginning of raw, or nil if its end has not arrived. What does not begin with a
// status line is an error at once: servers of other protocols may wait for the client then.
func (k *intake) head() ([]byte, error) {
	for {
		i := bytes.IndexByte(k.raw[k.looked:], '\n')
		if i < 0 {
			k.looked = len(k.raw)
			return nil, nil
		}
		begin := k.line
		k.looked += i + 1
		k.line = k.looked
		line := bytes.TrimRight(k.raw[begin:k.line], "\r\n")
		if begin == 0 {
			if _, _, ok := cutStatus(line); !ok {
				return nil, malformed("it does not begin with a status line")
			}
		}
		if len(line) == 0 {
			return k.raw[:k.line:k.line], nil
		}
	}
}

// cutStatus returns the version and the rest of a status line without its end, and whether it is one.
func cutStatus(line []byte) (proto string, rest []byte, ok bool) {
	before, rest, _ := bytes.Cut(line, []byte(" "))
	if proto = string(before); proto == "ICY" {
		proto = "HTTP/1.0"
	}
	code, _, _ := strings.Cut(strings.TrimLeft(string(rest), " "), " ")
	_, _, ok = http.ParseHTTPVersion(proto)
	return proto, rest, ok && len(code) == 3 && strings.Trim(code, "0123456789") == ""
}

// vital are the names of the fields that say where a response ends and how its content is read, as their letters alone.
// A bad line that could be meant for one of them is never left out.
var vital = []string{
	"contentlength", "transferencoding", "contentencoding", "contentrange", "connection", "location", "upgrade",
	"trailer",
}

// repair returns a head that net/http reads as browsers and curl read this one, or an error if it is not certain what
// the server means: lines that are not fields are left out, ICY, with which radio servers begin, becomes HTTP/1.0, and
// chunks in HTTP/1.0 are read as chunks (RFC 9112 section 6.1), after which the connection ends. NUL, bare CR and a
// space before a colon, with which messages are smuggled, are errors. The result may be raw itself.
func repair(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, 0) >= 0 || bytes.Count(raw, []byte("\r")) != bytes.Count(raw, []byte("\r\n")) {
		return nil, malformed("a NUL or a CR without LF in its head")
	}
	first := raw[:bytes.IndexByte(raw, '\n')+1]
	proto, rest, _ := cutStatus(first)
	changed := !bytes.HasPrefix(raw, []byte(proto))
	var codings, lengths int
	fields := make([]byte, 0, len(raw)+32)
	for left := raw[len(first):]; ; {
		field := cutField(left)
		left = left[len(field):]
		name, value, colon := bytes.Cut(bytes.TrimRight(field, "\r\n"), []byte(":"))
		if len(name) == 0 && !colon {
			fields = append(fields, field...) // the empty line
			break
		}
		if flaw := flawOf(name, value, colon); flaw != "" {
			if !mayDrop(name) {
				return nil, malformed(flaw)
			}
			changed = true
			continue
		}
		switch {
		case strings.EqualFold(string(name), "Transfer-Encoding"):
			if codings++; codings > 1 || !strings.EqualFold(string(bytes.TrimSpace(value)), "chunked") {
				return nil, malformed("an unknown transfer coding")
			}
		case strings.EqualFold(string(name), "Content-Length"):
			lengths++
		}
		fields = append(fields, field...)
	}
	if major, minor, _ := http.ParseHTTPVersion(proto); codings > 0 && (major < 1 || major == 1 && minor < 1) {
		if lengths > 0 {
			return nil, malformed("Content-Length and Transfer-Encoding in an HTTP/1.0 response")
		}
		changed, proto, rest = true, "HTTP/1.1", append(bytes.Clone(rest), "Connection: close\r\n"...)
	}
	if !changed {
		return raw, nil
	}
	return bytes.Join([][]byte{[]byte(proto + " "), rest, fields}, nil), nil
}

// cutField returns the first line of b, with the lines that continue it (RFC 9112 section 5.2).
func cutField(b []byte) []byte {
	n := bytes.IndexByte(b, '\n') + 1
	for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		n += bytes.IndexByte(b[n:], '\n') + 1
	}
	return b[:n]
}

// flawOf returns what is wrong with a field line, "" if nothing is.
func flawOf(name, value []byte, colon bool) string {
	switch {
	case !colon:
		return "a line without a colon in its head"
	case !httpguts.ValidHeaderFieldName(string(name)):
		return "a field whose name is not valid"
	case bytes.ContainsFunc(value, func(c rune) bool {
		return c < ' ' && c != '\t' && c != '\r' && c != '\n' ||
			c == 0x7f
	}):
		return "a field whose value has control characters"
	}
	return ""
}

// mayDrop reports whether a bad line with this name may be left out.
func mayDrop(name []byte) bool {
	if n := len(name); n > 0 && (strings.ContainsRune(" \t", rune(name[0])) ||
		strings.ContainsRune(" \t", rune(name[n-1]))) {
		return false
	}
	letters := strings.Map(func(c rune) rune {
		if c |= 0x20; c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, string(name))
	for _, v := range vital {
		if strings.Contains(letters, v) {
			return false
		}
	}
	return true
}
