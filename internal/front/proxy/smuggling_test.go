package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestR213Smuggling: HTTP/2 can carry bytes that would end a line or a request in HTTP/1.1. None of them reaches the origin.
func TestR213Smuggling(t *testing.T) {
	const evil = "\r\nHost: evil\r\n\r\nGET /evil HTTP/1.1"
	base := func(change ...string) (fields []hpack.HeaderField) {
		f := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", openedHost}, {":path", "/"}}
		for i := range f {
			if len(change) == 2 && f[i][0] == change[0] {
				f[i][1], change = change[1], nil
			}
		}
		for _, p := range f {
			fields = append(fields, hpack.HeaderField{Name: p[0], Value: p[1]})
		}
		if len(change) == 2 {
			fields = append(fields, hpack.HeaderField{Name: change[0], Value: change[1]})
		}
		return fields
	}
	for name, change := range map[string][2]string{
		"a method with a request in it": {":method", "GET /evil HTTP/1.1\r\nX: y"},
		"a method with a space":         {":method", "GET /evil"},
		"a path with a request in it":   {":path", "/" + evil},
		"a path with a version in it":   {":path", "/evil HTTP/1.0"},
		"a path with a tab":             {":path", "/a\tb"},
		"a path that is a whole URL":    {":path", "http://evil/"},
		"a path without a slash":        {":path", "evil"},
		"a fragment":                    {":path", "/#evil"},
		"an authority with a line end":  {":authority", "a\r\nX: evil"},
		"an authority with user info":   {":authority", "evil@" + openedHost},
		"an authority with a path":      {":authority", openedHost + "/evil"},
		"a value with a line end":       {"x-a", "b\r\nevil: c"},
		"a value with a bare line end":  {"x-a", "b\nevil: c"},
		"a value with a zero":           {"x-a", "b\x00c"},
		"a name with a colon":           {"x-a: evil", "b"},
		"a name with a line end":        {"x-a\r\nevil", "b"},
		"a name in capitals":            {"X-Evil", "b"},
		"Transfer-Encoding":             {"transfer-encoding", "chunked"},
		"Connection":                    {"connection", "x-a"},
		"CONNECT":                       {":method", "CONNECT"},
		"an empty path":                 {":path", ""},
		"a second path":                 {":path ", "/evil"},
	} {
		t.Run(name, func(t *testing.T) {
			o := opens(t, nil, nil)
			status := o.ask(base(change[0], change[1]))
			if status != "" && status != "400" && status != "421" {
				t.Errorf("status %q", status)
			}
			if got := o.requests(); got != nil {
				t.Errorf("the origin saw %q", got)
			}
			if got := o.f.last(); got != nil {
				t.Errorf("the transport saw %v", got)
			}
		})
	}
	for name, change := range map[string][2]string{ // this is how net/http reads them
		"the same without any of it":   {"x-a", "b"},
		"a content length without any": {"content-length", "40"},
		"a content length of two":      {"content-length", "4, 4"},
	} {
		t.Run(name, func(t *testing.T) {
			lengths := make(chan string, 1)
			o := opens(t, func(_ http.ResponseWriter, r *http.Request) {
				lengths <- fmt.Sprint(r.ContentLength, r.TransferEncoding, r.Header["Content-Length"])
			}, nil)
			if status := o.ask(base(change[0], change[1])); status != "200" || len(o.requests()) != 1 {
				t.Errorf("status %q, requests %v", status, o.requests())
			}
			if got := <-lengths; got != "0 [] []" {
				t.Errorf("the origin saw a length: %s", got)
			}
		})
	}
}

// ask sends a request over HTTP/2, byte for byte, and returns its status, see h2Status.
func (o *opening) ask(fields []hpack.HeaderField) (status string) {
	o.t.Helper()
	nc := o.must(o.trusting("h2", "http/1.1"))
	_, _ = io.WriteString(nc, http2.ClientPreface)
	f := http2.NewFramer(nc, nc)
	_ = f.WriteSettings()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range fields {
		_ = e.WriteField(h)
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	return h2Status(o.t, f)
}

// h2Status returns the status of stream 1, "" if it or the connection is reset.
func h2Status(t *testing.T, f *http2.Framer) (status string) {
	t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "" // the connection
		}
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			d := hpack.NewDecoder(4096, func(h hpack.HeaderField) {
				if h.Name == ":status" {
					status = h.Value
				}
			})
			_, _ = d.Write(frame.HeaderBlockFragment())
			return status
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return ""
		}
	}
}
