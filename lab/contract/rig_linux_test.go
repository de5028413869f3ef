package contract

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
	"github.com/tributary-http/tributary/pkg/tributary"
)

const (
	port     = 8000
	inClient = "TRIBUTARY_CONTRACT" // set in the second run
	testTime = time.Minute
)

var links = []string{"wifi", "lte"}

// play runs a test in two halves: origin returns the handler at the far end of the lab, user uses a Transport in the
// client namespace. least is the number of bytes that each link must have carried at the end.
func play(t *testing.T, origin func(t *testing.T) http.Handler, least int64, user func(t *testing.T, tr *recorder)) {
	t.Helper()
	if os.Getenv(inClient) != "" {
		tr, err := tributary.New(tributary.Options{Links: links})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		user(t, &recorder{to: tr})
		return
	}
	netlab.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	l, err := netlab.New(ctx, netlab.Scenario{Name: "contract", Links: []netlab.LinkSpec{
		netlab.Symmetric(links[0], 60*netlab.Mbit, 10*time.Millisecond),
		netlab.Symmetric(links[1], 40*netlab.Mbit, 30*time.Millisecond),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	var ln net.Listener
	err = l.InServer(func() (err error) {
		ln, err = net.Listen("tcp", originAddr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: origin(t)}
	defer server.Close()
	go func() { _ = server.Serve(ln) }()

	cmd := l.Client(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inClient+"=1")
	said, err := cmd.CombinedOutput()
	t.Logf("in the client namespace:\n%s", said)
	if err != nil || !strings.Contains(string(said), "--- PASS: "+t.Name()+" ") {
		t.Errorf("in the client namespace: %v", err)
	}
	for _, name := range links {
		down, _, err := l.Link(name).Counters()
		if err != nil || down.Bytes < least {
			t.Errorf("%s carried %d bytes, want at least %d; %v", name, down.Bytes, least, err)
		}
	}
}

// originAddr is the address at which clients reach the origin.
var originAddr = fmt.Sprintf("%s:%d", netlab.OriginAddr, port)

// content returns n bytes that are the same in both runs.
func content(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // it never fails
	return b
}

// request is a request and its outcome.
type request struct {
	method, path string
	ranged       bool // the request had a Range field
	*tributary.Report
}

// recorder is a Transport that keeps a report of every request.
type recorder struct {
	to *tributary.Transport

	mu  sync.Mutex
	all []request
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	report := &tributary.Report{}
	r.mu.Lock()
	r.all = append(r.all, request{q.Method, q.URL.Path, q.Header.Get("Range") != "", report})
	r.mu.Unlock()
	return r.to.RoundTrip(q.WithContext(tributary.WithReport(q.Context(), report)))
}

// find returns the GETs since the last forget whose path ends in suffix.
func (r *recorder) find(suffix string) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var some []request
	for _, q := range r.all {
		if q.method == http.MethodGet && strings.HasSuffix(q.path, suffix) {
			some = append(some, q)
		}
	}
	return some
}

// forget drops all reports.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
}

// divided fails the test unless each link carried at least a tenth of size.
func (q request) divided(t *testing.T, size int) {
	t.Helper()
	use := q.Links()
	t.Logf("GET %s: %+v %q", q.path, use, q.Undivided())
	if len(use) != len(links) || q.Undivided() != "" {
		t.Errorf("GET %s: %+v, undivided: %q", q.path, use, q.Undivided())
	}
	for _, l := range use {
		if l.Received-l.Wasted < int64(size/10) {
			t.Errorf("GET %s: %+v of %d bytes", q.path, l, size)
		}
	}
}

// undivided fails the test unless all bytes arrived over one link for the given reason.
func (q request) undivided(t *testing.T, size int, reason string) {
	t.Helper()
	use := q.Links()
	t.Logf("GET %s: %+v %q", q.path, use, q.Undivided())
	if len(use) != 1 || use[0].Received != int64(size) || q.Undivided() != reason {
		t.Errorf("GET %s: %+v, undivided: %q; want %d bytes over one link, %q", q.path, use, q.Undivided(), size, reason)
	}
}
