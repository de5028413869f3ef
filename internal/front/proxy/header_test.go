package proxy_test

import (
	"slices"
	"strings"
	"testing"
)

func TestRequestFields(t *testing.T) {
	g := start(t)
	o, heads := answer(t, okAnswer)
	for _, tt := range []struct {
		name   string
		fields []string
		field  string
		want   []string
	}{
		{"R19 nominated", []string{"Connection: x-a, X-B", "X-A: 1", "x-b: 2"}, "X-A", nil},
		{"R19 two lines", []string{"Connection:", "Connection: x-a", "X-A: 1"}, "X-A", nil},
		{"R19 Connection itself", []string{"Connection: x-a"}, "Connection", nil},
		{"R22 twice", []string{"Connection: keep-alive, X-A, x-a,, keep-alive", "Connection: keep-alive", "X-A: 1"}, "X-A", nil},
		{"R20 Keep-Alive", []string{"Keep-Alive: timeout=5"}, "Keep-Alive", nil},
		{"R20 R35 Proxy-Authorization", []string{"Proxy-Authorization: Basic eDp5"}, "Proxy-Authorization", nil},
		{"R20 Upgrade", []string{"Upgrade: foo/2"}, "Upgrade", nil},
		{"R21 Host nominated", []string{"Connection: host"}, "Host", []string{o.addr}},
		{"R23 Proxy-Connection", []string{"Proxy-Connection: keep-alive"}, "Proxy-Connection", nil},
		{"R24 no Via", nil, "Via", nil},
		{"R26 no X-Forwarded-For", nil, "X-Forwarded-For", nil},
		{"R26 X-Forwarded-For of the client", []string{"X-Forwarded-For: 1.2.3.4"}, "X-Forwarded-For", []string{"1.2.3.4"}},
		{"R27 no User-Agent", nil, "User-Agent", nil},
		{"R27 User-Agent of the client", []string{"User-Agent: x/1"}, "User-Agent", []string{"x/1"}},
		{"R28 no Accept-Encoding", nil, "Accept-Encoding", nil},
		{"R32 same-name lines", []string{"X-A: 1", "X-A: 2"}, "X-A", []string{"1", "2"}},
		{"R32 high bytes", []string{"X-A: \xe9\xff"}, "X-A", []string{"\xe9\xff"}},
		{"R70 h2c", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA"}, "Upgrade", nil},
		{"R70 settings", []string{"Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AAMA"}, "HTTP2-Settings", nil},
		{"R72 Expect without content", []string{"Expect: 100-continue"}, "Expect", nil},
		{"R78 conditional", []string{`If-None-Match: "a"`}, "If-None-Match", []string{`"a"`}},
		{"R79 Range", []string{"Range: bytes=1-"}, "Range", []string{"bytes=1-"}},
		{"R79 odd Range", []string{"Range: items=1-2,3"}, "Range", []string{"items=1-2,3"}},
		{"R21 Range nominated", []string{"Connection: range", "Range: bytes=1-"}, "Range", nil},
		{"R85 Cache-Control", nil, "Cache-Control", nil},
	} {
		for _, way := range []string{"", passOn} { // through the engine, where eligible, and passed through
			t.Run(tt.name+" "+way, func(t *testing.T) {
				fields := tt.fields
				if way != "" {
					fields = append(slices.Clone(fields), way)
				}
				c := g.send("GET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(append(fields, "", ""), "\r\n"))
				c.wantHead("200")
				head := <-heads
				got := fieldsOf(head, tt.field)
				if way != "" && tt.field == "Connection" {
					got = slices.DeleteFunc(got, func(s string) bool { return s == "TE" })
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("origin saw %s %q, want %q; head %q", tt.field, got, tt.want, head)
				}
			})
		}
	}
	t.Run("R33 TE", func(t *testing.T) {
		c := g.send("GET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\nTE: gzip, trailers\r\n\r\n")
		c.wantHead("200")
		head := <-heads
		if te, cn := fieldsOf(head, "TE"), fieldsOf(head, "Connection"); !slices.Equal(te, []string{"trailers"}) ||
			!slices.Equal(cn, []string{"TE"}) {
			t.Errorf("TE %q, Connection %q", te, cn)
		}
	})
	t.Run("R25 Max-Forwards", func(t *testing.T) {
		c := g.send("TRACE " + o.url("/x") + " HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nCookie: secret\r\nX-A: b\r\n\r\n")
		c.wantHead("200")
		c.want("TRACE " + o.url("/x") + " HTTP/1.1\r\nMax-Forwards: 0\r\nX-A: b\r\n\r\n")
		c.send("OPTIONS " + o.url("/x") + " HTTP/1.1\r\nHost: x\r\nMax-Forwards: 7\r\n\r\n")
		c.wantHead("200")
		if mf := fieldsOf(<-heads, "Max-Forwards"); !slices.Equal(mf, []string{"6"}) {
			t.Errorf("Max-Forwards %q, want 6", mf)
		}
	})
	t.Run("R195 nothing of the request in the log", func(t *testing.T) {
		if s := g.log.String(); s != "" {
			t.Errorf("log: %s", s)
		}
	})
}

func TestRequest(t *testing.T) {
	g := start(t)
	o, _ := answer(t, okAnswer)
	g.get(o.url("/a?b"), "Accept-Encoding: gzip").wantHead("200")
	q := g.f.last()
	if q == nil || q.URL.Scheme != "http" || q.Host != o.addr || q.URL.Host != o.addr || q.URL.RequestURI() != "/a?b" {
		t.Fatalf("the transport got %+v", q)
	}
}

func TestResponseFields(t *testing.T) {
	g := start(t)
	const answers = "HTTP/1.1 299 Odd\r\nContent-Length: 2\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\nKeep-Alive: timeout=1\r\n" +
		"Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nSet-Cookie: a=3\r\n" +
		"Content-Disposition: \xe9\r\nServer: s\r\nAge: 7\r\nX-Forwarded-For: y\r\n\r\n<h"
	o, _ := answer(t, answers)
	for _, way := range []string{"Accept: */*", passOn} {
		c := g.get(o.url("/"), way)
		head := c.wantHead("299")
		c.want("<h")
		for _, tt := range []struct {
			rule, field string
			want        []string
		}{
			{"R19", "X-A", nil},
			{"R20", "Keep-Alive", nil},
			{"R20", "Proxy-Authenticate", nil},
			{"R20", "Upgrade", nil},
			{"R24", "Via", nil},
			{"R29", "Content-Type", nil},
			{"R31", "Set-Cookie", []string{"a=1", "b=2", "a=3"}},
			{"R31", "Age", []string{"7"}},
			{"R31", "Server", []string{"s"}},
			{"R32", "Content-Disposition", []string{"\xe9"}},
			{"R110", "Content-Length", []string{"2"}},
		} {
			if got := fieldsOf(head, tt.field); !slices.Equal(got, tt.want) {
				t.Errorf("%s %s: %q, want %q", tt.rule, tt.field, got, tt.want)
			}
		}
		if d := fieldsOf(head, "Date"); len(d) != 1 {
			t.Errorf("R31: Date %q, want one", d)
		}
	}
	t.Run("R31 Date kept", func(t *testing.T) {
		const date = "Mon, 01 Jan 2001 00:00:00 GMT"
		o, _ := answer(t, "HTTP/1.1 200 OK\r\nDate: "+date+"\r\nContent-Length: 0\r\n\r\n")
		if d := fieldsOf(g.get(o.url("/")).wantHead("200"), "Date"); !slices.Equal(d, []string{date}) {
			t.Errorf("Date %q", d)
		}
	})
	t.Run("R28 R51 gzip untouched", func(t *testing.T) {
		o, _ := answer(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8bxx")
		c := g.get(o.url("/"))
		head := c.wantHead("200")
		c.want("\x1f\x8bxx")
		if ce := fieldsOf(head, "Content-Encoding"); !slices.Equal(ce, []string{"gzip"}) {
			t.Errorf("Content-Encoding %q", ce)
		}
	})
	t.Run("R63 redirect passes", func(t *testing.T) {
		o, _ := answer(t, "HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n")
		if l := fieldsOf(g.get(o.url("/")).wantHead("302"), "Location"); !slices.Equal(l, []string{"http://x/"}) {
			t.Errorf("Location %q", l)
		}
	})
}
