package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// head returns the status and the fields of an answer, sorted, without those that differ from one answer to the next or
// belong to one connection. Names are in lower case and the reason is left out, since their spelling has no meaning.
func head(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n") {
		name, value, field := strings.Cut(line, ":")
		name = strings.ToLower(name)
		switch {
		case !field:
			lines = append(lines, strings.Join(strings.Fields(line)[1:2], ""))
		case !slices.Contains([]string{"date", "connection", "keep-alive"}, name):
			lines = append(lines, name+":"+value)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// same fetches with curl directly and through the proxy, and fails the test if head or body differ.
func (r *rig) same(args ...string) {
	r.Helper()
	var heads [2]string
	var bodies [2]ran
	for i, via := range [][]string{{"--interface", "wifi"}, {"-x", proxyURL}} {
		file := r.file()
		bodies[i] = r.client("curl", slices.Concat([]string{"-sS", "-D", file}, via, args)...)
		heads[i] = head(string(r.read(file)))
	}
	if bodies[0].failed != nil || bodies[1].code != bodies[0].code || !bytes.Equal(bodies[0].body, bodies[1].body) {
		r.Errorf("%v: directly %d bytes, %v, through the proxy %d bytes, %v %s", args, len(bodies[0].body), bodies[0].failed,
			len(bodies[1].body), bodies[1].failed, bodies[1].said)
	}
	if heads[0] != heads[1] {
		r.Errorf("%v: directly\n%s\n\nthrough the proxy\n%s", args, heads[0], heads[1])
	}
}

// newRequests runs do and returns the requests that nginx began to serve meanwhile. nginx writes a line when a response
// ends, and one that was cut off before do may end after it.
func (r *rig) newRequests(do func()) []netlab.Request {
	r.Helper()
	began := time.Now().Truncate(time.Millisecond) // as nginx writes it
	do()
	r.settle()
	requests, err := r.nginx.Requests()
	if err != nil {
		r.Fatal(err)
	}
	return slices.DeleteFunc(requests, func(q netlab.Request) bool { return q.Began.Before(began) })
}

func TestAnswersAreTheOrigins(t *testing.T) {
	r := start(t, quick())
	small, large := r.object(10_000), r.object(2_000_000)
	for name, args := range map[string][]string{
		"GET, small":             {small.URL},
		"GET, a transfer":        {large.URL},
		"HEAD":                   {"--head", "-o", "/dev/null", large.URL},
		"404":                    {small.URL + "-none"},
		"405 for POST":           {"--data", "x=y", small.URL},
		"405 for PUT":            {"--upload-file", "/etc/os-release", large.URL},
		"OPTIONS":                {"--request", "OPTIONS", small.URL},
		"304":                    {"--header", "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT", large.URL},
		"412":                    {"--header", `If-Match: "other"`, large.URL},
		"206, small":             {"--range", "10-99", small.URL},
		"206, a transfer":        {"--range", "500000-1999998", large.URL},
		"206, to the end":        {"--range", "500000-", large.URL},
		"206, the end":           {"--range", "-1200000", large.URL},
		"206, beyond the end":    {"--range", "1400000-9000000", large.URL},
		"416":                    {"--range", "9000000-", large.URL},
		"200 for If-Range":       {"--range", "500000-", "--header", `If-Range: "other"`, large.URL},
		"HTTP/1.0":               {"--http1.0", large.URL},
		"through a tunnel, GET":  {"--proxytunnel", "--suppress-connect-headers", large.URL},
		"through a tunnel, HEAD": {"--proxytunnel", "--suppress-connect-headers", "--head", "-o", "/dev/null", small.URL},
	} {
		t.Run(name, func(t *testing.T) { r.on(t).same(args...) })
	}
}

func TestSmallObjectIsOneRequest(t *testing.T) {
	r := start(t, quick())
	small, large := r.object(10_000), r.object(5_000_000)
	for _, lately := range []string{"nothing", "a large object"} { // what was downloaded from the origin before
		requests := r.newRequests(func() { r.download(small.URL, small) })
		if len(requests) != 1 || requests[0].BytesSent < int64(small.Size) {
			t.Errorf("after %s: nginx answered %+v", lately, requests)
		}
		r.download(large.URL, large)
	}
	if requests := r.newRequests(func() { r.ok(r.curl("--head", large.URL)) }); len(requests) != 1 {
		t.Errorf("HEAD: nginx answered %+v", requests)
	}
}

// echo is an origin that answers with the content of the request.
type echo struct {
	url  string
	mu   sync.Mutex
	head http.Header // of the last request, with its method and its framing
}

func startEcho(r *rig) *echo {
	r.Helper()
	e := &echo{}
	e.url = r.serveHTTP(8080, e) + "/"
	return e
}

// serveHTTP serves at a port of the origin until the test's end and returns the URL, without a path.
func (r *rig) serveHTTP(port int, h http.Handler) (url string) {
	r.Helper()
	return r.serveHTTPAt(net.JoinHostPort(netlab.OriginAddr.String(), strconv.Itoa(port)), h)
}

// serveHTTPAt is serveHTTP at an address of the server's namespace.
func (r *rig) serveHTTPAt(addr string, h http.Handler) (url string) {
	r.Helper()
	var ln net.Listener
	err := r.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp", addr)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() { _ = server.Serve(ln); close(ended) }()
	r.Cleanup(func() { server.Close(); <-ended })
	return "http://" + ln.Addr().String()
}

func (e *echo) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h := req.Header.Clone()
	h.Del("Connection") // of this connection only
	if req.Method == http.MethodGet {
		h.Del("Range") // R77: the proxy may begin with its own range
	}
	h.Set("Method", req.Method)
	h.Set("Framing", fmt.Sprint(req.ContentLength, req.TransferEncoding))
	e.mu.Lock()
	e.head = h
	e.mu.Unlock()
	_, _ = w.Write(body)
}

func (e *echo) last() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.head)
}

func TestRequestsAreTheClients(t *testing.T) {
	r := start(t, quick())
	e := startEcho(r)
	body, err := io.ReadAll(netlab.Content(1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	file := r.file()
	if err := os.WriteFile(file, body, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"GET":                           {e.url},
		"POST":                          {"--data-binary", "@" + file, "--header", "Expect:", e.url},
		"POST, 100-continue":            {"--data-binary", "@" + file, "--header", "Expect: 100-continue", e.url},
		"POST, chunked":                 {"--data-binary", "@" + file, "--header", "Transfer-Encoding: chunked", e.url},
		"PUT":                           {"--upload-file", file, e.url},
		"PATCH, empty":                  {"--request", "PATCH", "--data", "", e.url},
		"fields of one connection":      {"--header", "Connection: X-Hop", "--header", "X-Hop: a", "--header", "X-End: b", "--data", "c", e.url},
		"coding, agent, several values": {"--header", "Accept-Encoding: br", "--user-agent", "me", "--header", "X-A: 1", "--header", "X-A: 2", e.url},
	} {
		t.Run(name, func(t *testing.T) {
			r := r.on(t)
			args := append([]string{"-sS", "--fail"}, args...)
			direct := r.ok(r.client("curl", append([]string{"--interface", "wifi"}, args...)...))
			want := e.last()
			proxied := r.ok(r.client("curl", append([]string{"-x", proxyURL}, args...)...))
			if !bytes.Equal(direct.body, proxied.body) {
				t.Errorf("directly %d bytes came back, through the proxy %d", len(direct.body), len(proxied.body))
			}
			if got := e.last(); strings.ReplaceAll(want, " X-Hop:[a]", "") != got {
				t.Errorf("the origin got\n%s\nthrough the proxy, directly\n%s", got, want)
			}
		})
	}
}
