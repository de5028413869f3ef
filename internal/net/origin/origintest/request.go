package origintest

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// Request is one request as the server saw it.
type Request struct {
	N         int       // number among all requests, from 1
	Nth       int       // number among the requests for the same target, from 1
	Node      int       // listener: 0 or 1
	Conn      int       // number of the connection, from 1
	Seq       int       // number on the connection, from 1
	Pipelined bool      // arrived before the answer to the previous request of the connection was sent
	At        time.Time // arrival of the head
	Local     string    // address of the listener
	Remote    string

	Raw    string // the head, byte for byte
	Method string
	Target string
	Proto  string
	Header http.Header
	Range  string // value of Range, "" if there is none
	Body   []byte // the first MiB of the content
	Sent   int64  // body bytes sent by all nodes before this request arrived
}

// maxRequest bounds the head of a request and the stored part of its content, in bytes.
const maxRequest = 1 << 20

var errRequest = errors.New("malformed request")

// readRequest reads one request. It is strict: a test server must not accept invalid requests.
func readRequest(br *bufio.Reader) (*Request, error) {
	var raw strings.Builder
	for {
		line, err := br.ReadString('\n')
		raw.WriteString(line)
		if err != nil {
			return nil, err
		}
		if raw.Len() > maxRequest || !strings.HasSuffix(line, "\r\n") {
			return nil, errRequest
		}
		if line == "\r\n" {
			break
		}
	}
	r := &Request{Raw: raw.String(), At: time.Now()}
	first, rest, _ := strings.Cut(r.Raw, "\r\n")
	parts := strings.Split(first, " ")
	if len(parts) != 3 {
		return nil, errRequest
	}
	r.Method, r.Target, r.Proto = parts[0], parts[1], parts[2]
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(rest))).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	r.Header = http.Header(h)
	r.Range = r.Header.Get("Range")
	var content io.Reader
	if r.Header.Get("Transfer-Encoding") == "chunked" {
		content = httputil.NewChunkedReader(br)
	} else if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil {
		content = io.LimitReader(br, n)
	}
	if content == nil {
		return r, nil
	}
	if r.Body, err = io.ReadAll(io.LimitReader(content, maxRequest)); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return nil, err
	}
	if r.Header.Get("Transfer-Encoding") == "chunked" {
		if _, err := br.ReadString('\n'); err != nil { // end of an empty trailer section
			return nil, err
		}
	}
	return r, nil
}
