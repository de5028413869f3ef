package origin

import (
	"net/http"
	"testing"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

func TestAppendRequest(t *testing.T) {
	target := func(path string) engine.Target {
		return engine.Target{Scheme: "http", Host: "Example.COM:80", Addr: "example.com:80", Path: path}
	}
	const start = "GET /x HTTP/1.1\r\nHost: Example.COM:80\r\n"
	tests := []struct {
		name string
		ask  engine.RangeRequest
		want string // "" = refused
	}{
		{"R27 nothing added", engine.RangeRequest{Target: target("/x")}, start + "\r\n"},
		{
			"R6 path as it came",
			engine.RangeRequest{Target: target("//a/../b;c=%zz|[\xc3\xa9%2F?")},
			"GET //a/../b;c=%zz|[\xc3\xa9%2F? HTTP/1.1\r\nHost: Example.COM:80\r\n\r\n",
		},
		{"R32 order of one name, bytes of values", engine.RangeRequest{
			Target: target("/x"),
			Header: http.Header{"X-B": {"2", "1"}, "Cookie": {"\xe4=1"}},
		}, start + "Cookie: \xe4=1\r\nX-B: 2\r\nX-B: 1\r\n\r\n"},
		{"range", engine.RangeRequest{Target: target("/x"), Range: segment.Range{Start: 5, End: 10}}, start + "Range: bytes=5-9\r\n\r\n"},
		{"one byte", engine.RangeRequest{Target: target("/x"), Range: segment.Range{Start: 0, End: 1}}, start + "Range: bytes=0-0\r\n\r\n"},
		{
			"open range",
			engine.RangeRequest{Target: target("/x"), Range: segment.Range{Start: 5, End: byterange.Open}},
			start + "Range: bytes=5-\r\n\r\n",
		},
		{
			"R94 If-Range",
			engine.RangeRequest{Target: target("/x"), Range: segment.Range{Start: 5, End: 10}, IfRange: `"v"`},
			start + "Range: bytes=5-9\r\nIf-Range: \"v\"\r\n\r\n",
		},
		{"If-Range only with Range", engine.RangeRequest{Target: target("/x"), IfRange: `"v"`}, start + "\r\n"},
		{"the Ask's range fields only", engine.RangeRequest{
			Target: target("/x"),
			Header: http.Header{"Range": {"bytes=1-2"}, "If-Range": {"x"}, "Host": {"y"}, "Content-Length": {"3"}},
		}, start + "\r\n"},
		{"R84 joined to an uncoded answer", engine.RangeRequest{
			Target: target("/x"), Want: &engine.Identity{},
			Header: http.Header{"Accept-Encoding": {"gzip", "br"}},
		}, start + "Accept-Encoding: identity\r\n\r\n"},
		{
			"R84 first request",
			engine.RangeRequest{Target: target("/x"), Header: http.Header{"Accept-Encoding": {"gzip"}}},
			start + "Accept-Encoding: gzip\r\n\r\n",
		},
		{"R84 joined to a coded answer", engine.RangeRequest{
			Target: target("/x"), Want: &engine.Identity{Coding: "gzip"},
			Header: http.Header{"Accept-Encoding": {"gzip"}},
		}, start + "Accept-Encoding: gzip\r\n\r\n"},
		{"R52 LF in a value", engine.RangeRequest{Target: target("/x"), Header: http.Header{"A": {"b\nc: d"}}}, ""},
		{"R52 CR in a value", engine.RangeRequest{Target: target("/x"), Header: http.Header{"A": {"b\r"}}}, ""},
		{"R52 NUL in a value", engine.RangeRequest{Target: target("/x"), Header: http.Header{"A": {"\x00"}}}, ""},
		{"R52 colon in a name", engine.RangeRequest{Target: target("/x"), Header: http.Header{"A: b": {"c"}}}, ""},
		{"R52 If-Range", engine.RangeRequest{Target: target("/x"), Range: segment.Range{End: 1}, IfRange: "a\r\nb: c"}, ""},
		{"R52 host", engine.RangeRequest{Target: engine.Target{Host: "a\r\nb: c", Path: "/"}}, ""},
		{"R52 space in the path", engine.RangeRequest{Target: target("/x HTTP/1.0")}, ""},
		{"no path", engine.RangeRequest{Target: target("")}, ""},
		{"range without a byte", engine.RangeRequest{Target: target("/x"), Range: segment.Range{Start: 5, End: 5}}, ""},
		{"range before the start", engine.RangeRequest{Target: target("/x"), Range: segment.Range{Start: -5, End: 5}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := appendRequest(nil, &tt.ask)
			if string(got) != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
