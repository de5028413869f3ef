package proxy_test

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var statusLine = regexp.MustCompile(`HTTP/1\.1 [0-9]`)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// passOn makes a GET pass-through.
const passOn = "TE: trailers"

func TestTargetBytes(t *testing.T) {
	g := start(t)
	o, heads := answer(t, okAnswer)
	paths := []string{
		"/", "/a%2Fb", "/a|b", "/[x]", "/caf\xc3\xa9", "//x", "//x|y?z", "///", "/a/../b", "/a/./b", "/a//b", "/;p=1", "/?", "/a?",
		"/?a;b&c=%zz", "/?x=http://y/?z", "/%20%41%7e", "/a?b=c+d%2B&&=", "/~!$&'()*+,;=:@", `/"<>\^{}`, "/?`",
		"/100%", "/%", "/%4/%zz%%25", "//%?%",
	}
	for _, path := range paths {
		for _, field := range []string{"Accept: */*", passOn} {
			t.Run("R6 "+path+" "+field, func(t *testing.T) {
				c := g.get(o.url(path), field)
				c.wantHead("200")
				head := <-heads
				target := strings.Fields(head)[1]
				// A path that begins with // may go out in absolute-form.
				if strings.TrimPrefix(target, "http://"+o.addr) != path {
					t.Errorf("origin saw %q, want %q", target, path)
				}
			})
		}
	}
	for _, tt := range []struct{ name, line, want string }{
		{"R8 empty path", "GET http://" + o.addr, "GET / "},
		{"R8 empty path with query", "GET http://" + o.addr + "?q", "GET /?q "},
		{"R8 OPTIONS", "OPTIONS http://" + o.addr, "OPTIONS * "},
		{"R8 OPTIONS with path", "OPTIONS http://" + o.addr + "/", "OPTIONS / "},
		{"R10 a user name is dropped", "GET http://u:p%40@" + o.addr + "/a@b", "GET /a@b HTTP/1.1\r\nHost: " + o.addr + "\r\n"},
		{"R10 the last @ ends it", "GET http://u@v:p@" + o.addr + "/", "GET / HTTP/1.1\r\nHost: " + o.addr + "\r\n"},
		{"R5 no path is cleaned", "GET http://" + o.addr + "//b/../a/./c", "GET http://" + o.addr + "//b/../a/./c "},
		{"R5 no redirect to a cleaned path", "GET http://" + o.addr + "/b/../a", "GET /b/../a "},
		{"R1 upper-case scheme", "GET HTTP://" + o.addr + "/x", "GET /x "},
		{"R13 unknown method", "BREW http://" + o.addr + "/x", "BREW /x "},
		{"R12 8 KiB", "GET http://" + o.addr + "/" + strings.Repeat("x", 8192), "GET /xxx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := g.send(tt.line + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			c.wantHead("200")
			if head := <-heads; !strings.HasPrefix(head, tt.want) {
				t.Errorf("origin saw %.60q, want %q", head, tt.want)
			}
		})
	}
	t.Run("R2 Host from the target", func(t *testing.T) {
		for _, field := range []string{"Accept: */*", passOn} {
			g.get(o.url("/"), field).wantHead("200")
			if host := fieldsOf(<-heads, "Host"); len(host) != 1 || host[0] != o.addr {
				t.Errorf("Host %q, want %s", host, o.addr)
			}
		}
	})
}

func TestRefusedTargets(t *testing.T) {
	g := start(t)
	_, own, _ := net.SplitHostPort(g.addr)
	for _, tt := range []struct{ name, request, status string }{
		{"R1 ftp", "GET ftp://o/ HTTP/1.1\r\nHost: o", "400"},
		{"R1 no host", "GET http:/x HTTP/1.1\r\nHost: o", "400"},
		{"R3 no Host", "GET http://o/ HTTP/1.1", "400"},
		{"R3 two Hosts", "GET http://o/ HTTP/1.1\r\nHost: o\r\nHost: o", "400"},
		{"R3 malformed Host", "GET http://o/ HTTP/1.1\r\nHost: a b", "400"},
		{"R10 userinfo without a host", "GET http://u:p@/ HTTP/1.1\r\nHost: o", "400"},
		{"R10 fragment", "GET http://o/#x HTTP/1.1\r\nHost: o", "400"},
		{"R10 fragment after the host", "GET http://o#x HTTP/1.1\r\nHost: o", "400"},
		{"R10 zone", "GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: o", "400"},
		{"R10 IPv4 in brackets", "GET http://[127.0.0.1]/ HTTP/1.1\r\nHost: o", "400"},
		{"R9 port 0", "GET http://o:0/ HTTP/1.1\r\nHost: o", "400"},
		{"R9 port 65536", "GET http://o:65536/ HTTP/1.1\r\nHost: o", "400"},
		{"R11 not ASCII", "GET http://\xc3\xa9/ HTTP/1.1\r\nHost: o", "400"},
		{"R12 line above 16 KiB", "GET http://o/" + strings.Repeat("x", 17<<10) + " HTTP/1.1\r\nHost: o", "414"},
		{"R12 line above the header limit", "GET http://o/" + strings.Repeat("x", 80<<10) + " HTTP/1.1\r\nHost: o", "431"},
		{"R189 lines", "GET http://o/ HTTP/1.1\r\nHost: o" + strings.Repeat("\r\na: b", 201), "431"},
		{"R14 HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM", "505"},
		{"R14 HTTP/3.0", "GET http://o/ HTTP/3.0\r\nHost: o", "505"},
		{"R58 unknown expectation", "GET http://o/ HTTP/1.1\r\nHost: o\r\nExpect: x", "417"},
		{"R9 CONNECT without port", "CONNECT o HTTP/1.1\r\nHost: o", "400"},
		{"R9 CONNECT empty port", "CONNECT o: HTTP/1.1\r\nHost: o:", "400"},
		{"R9 CONNECT port 0", "CONNECT o:0 HTTP/1.1\r\nHost: o:0", "400"},
		{"R9 CONNECT port 65536", "CONNECT o:65536 HTTP/1.1\r\nHost: o", "400"},
		{"R9 CONNECT path", "CONNECT /x HTTP/1.1\r\nHost: o", "400"},
		{"R9 CONNECT two colons", "CONNECT a:1:2 HTTP/1.1\r\nHost: o", "400"},
		{"R10 CONNECT userinfo", "CONNECT u@o:443 HTTP/1.1\r\nHost: o", "400"},
		{"R139 smtp", "CONNECT o:25 HTTP/1.1\r\nHost: o", "403"},
		{"R139 submissions", "CONNECT o:0465 HTTP/1.1\r\nHost: o", "403"},
		{"R139 a request to smtp", "GET http://o:25/ HTTP/1.1\r\nHost: o", "403"},
		{"R139 a request to smtps", "POST https://o:465/ HTTP/1.1\r\nContent-Length: 0\r\nHost: o", "403"},
		{"R139 a request to submission", "GET http://o:0587/ HTTP/1.1\r\nHost: o", "403"},
		{"R139 submission", "CONNECT o:587 HTTP/1.1\r\nHost: o", "403"},
		{"R142 CONNECT with content", "CONNECT o:443 HTTP/1.1\r\nHost: o\r\nContent-Length: 3\r\n\r\nabc", "400"},
		{"R142 CONNECT chunked", "CONNECT o:443 HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked", "400"},
		{"R15 own address", "GET http://127.0.0.1:" + own + "/ HTTP/1.1\r\nHost: o", "403"},
		{"R15 localhost", "GET http://LocalHost.:" + own + "/ HTTP/1.1\r\nHost: o", "403"},
		{"R15 sub.localhost", "GET http://a.localhost:" + own + "/ HTTP/1.1\r\nHost: o", "403"},
		{"R15 0.0.0.0", "GET http://0.0.0.0:" + own + "/ HTTP/1.1\r\nHost: o", "403"},
		{"R15 ::", "GET http://[::]:" + own + "/ HTTP/1.1\r\nHost: o", "403"},
		{"R15 mapped", "GET http://[::ffff:127.0.0.1]:" + own + "/ HTTP/1.1\r\nHost: o", "403"},
		{"R15 CONNECT mapped", "CONNECT [::ffff:7f00:1]:" + own + " HTTP/1.1\r\nHost: o", "403"},
		{"R4 origin-form", "GET /x HTTP/1.1\r\nHost: example", "400"},
		{"R37 Content-Length list", "POST http://o/ HTTP/1.1\r\nHost: o\r\nContent-Length: 3, 3\r\n\r\nabc", "400"},
		{"R40 two lengths", "POST http://o/ HTTP/1.1\r\nHost: o\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400"},
		{"R40 signed length", "POST http://o/ HTTP/1.1\r\nHost: o\r\nContent-Length: +3\r\n\r\nabc", "400"},
		{"R39 coding", "POST http://o/ HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501"},
		{"R44 space before colon", "GET http://o/ HTTP/1.1\r\nHost: o\r\na : b", "400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := g.send(tt.request + "\r\n\r\n")
			c.wantHead(tt.status)
			// The connection ends: nothing that follows is read as a request.
			c.send("GET http://" + g.addr + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if rest := c.ended(); statusLine.MatchString(rest) {
				t.Errorf("a second answer came: %q", rest)
			}
		})
	}
	if len(g.f.dialed) > 0 || g.f.last() != nil {
		t.Error("a refused request was dialed")
	}
	t.Run("R4 help page", func(t *testing.T) {
		c := g.send("GET / HTTP/1.1\r\nHost: example\r\n\r\n")
		head := c.wantHead("400")
		body, _ := c.rest()
		if !strings.Contains(body, "http_proxy=http://"+g.addr) {
			t.Errorf("help does not say how to use the proxy: %q", body)
		}
		if ct := fieldsOf(head, "Content-Type"); len(ct) != 1 || ct[0] != "text/plain; charset=utf-8" {
			t.Errorf("Content-Type %q", ct)
		}
	})
	t.Run("R188 content that is a request", func(t *testing.T) {
		o, _ := answer(t, okAnswer)
		smuggled := "CONNECT " + o.addr + " HTTP/1.1\r\nHost: x\r\n\r\nGET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n"
		for _, target := range []string{"/", "/submit", "ftp://x/"} {
			c := g.send("POST " + target + " HTTP/1.1\r\nHost: " + g.addr + "\r\nContent-Type: text/plain\r\nContent-Length: " +
				strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled)
			c.wantHead("400")
			if rest := c.ended(); statusLine.MatchString(rest) {
				t.Errorf("POST %s: a second answer came: %q", target, rest)
			}
		}
		if len(g.f.dialed) > 0 || o.dials() > 0 {
			t.Error("what the content asks for was dialed")
		}
	})
	t.Run("R45 empty lines before a request", func(t *testing.T) {
		o, _ := answer(t, okAnswer)
		get := "GET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n"
		g.send("\r\n\r\n" + get).wantHead("400")
		c := g.send("POST " + o.url("/") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n\r\n\r\n" + get)
		for range 2 {
			c.wantHead("200")
			c.want("ok")
		}
	})
	t.Run("R8 OPTIONS *", func(t *testing.T) {
		g.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").wantHead("200")
	})
}
