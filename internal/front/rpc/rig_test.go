package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tributary-http/tributary/internal/front/queue"
	"github.com/tributary-http/tributary/internal/host/partial"
)

// secret is the token of these tests.
const secret = "0123456789abcdef0123"

// limit bounds every wait of these tests; correct code stays far below it.
const limit = time.Minute

// origin serves /file, 3 MB; /slow, which stops after a while until the test ends; /login, which needs a cookie; and nothing
// else.
func origin(t *testing.T) *httptest.Server {
	content := bytes.Repeat([]byte("0123456789abcdef"), 3_000_000/16)
	over := make(chan struct{})
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/file", serve)
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("session"); err != nil || c.Value != "abc" || r.Header.Get("Referer") != "http://site/" || r.Header.Get("User-Agent") != "Browser/1" {
			http.Error(w, "log in", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename="../private.bin"`)
		serve(w, r)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		serve(&stopping{w, func() {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}, 100_000}, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() { close(over); s.Close() })
	return s
}

// stopping is a response that stops after a number of bytes.
type stopping struct {
	http.ResponseWriter
	wait func()
	left int
}

// Write implements io.Writer.
func (s *stopping) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p[:min(len(p), s.left)])
	if s.left -= n; s.left > 0 || err != nil {
		return n, err
	}
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	s.wait()
	return n, io.ErrUnexpectedEOF
}

// server is a running Server.
type server struct {
	*caller
	dir    string
	server *Server
}

// caller calls the methods at a URL.
type caller struct {
	t   *testing.T
	url string
}

// start starts a Server with a queue over net/http, and stops both at the end of the test. change may be nil.
func start(t *testing.T, change func(*Config)) *server {
	t.Helper()
	state := t.TempDir()
	s := &server{dir: filepath.Join(t.TempDir(), "files")}
	own := &http.Transport{}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q := queue.New(queue.Config{
		Transport: own, Dir: s.dir, State: filepath.Join(state, "downloads.json"), Partial: partial.Store(filepath.Join(state, "partial")),
		MaxConcurrent: 5, Agent: "tributary/test", Log: log,
		Free: func(ctx context.Context) context.Context { return ctx },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := q.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	c := Config{Queue: q, Token: secret, Version: "test", Session: strings.Repeat("5", 40), Log: log}
	if change != nil {
		change(&c)
	}
	answering := NewServer(c)
	s.server = answering
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = answering.HTTP().Serve(ln) })
	t.Cleanup(func() {
		_ = answering.HTTP().Close()
		answering.Close()
		cancel()
		running.Wait()
		own.CloseIdleConnections()
	})
	s.caller = &caller{t, "http://" + ln.Addr().String() + path}
	return s
}

// post sends text, and returns the status code and the decoded answer.
func (c *caller) post(text string) (status int, answer any) {
	c.t.Helper()
	q, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	q.Close = true // as aria2c does, without notice
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		c.t.Fatalf("%s: %v", b, err)
	}
	return resp.StatusCode, answer
}

// request encodes a call with the token.
func request(t *testing.T, method string, params ...any) string {
	t.Helper()
	if strings.HasPrefix(method, "aria2.") {
		params = append([]any{"token:" + secret}, params...)
	}
	if params == nil {
		params = []any{}
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "1", "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// call calls a method, which must succeed, and returns its result.
func (c *caller) call(method string, params ...any) any {
	c.t.Helper()
	status, answer := c.post(request(c.t, method, params...))
	m, _ := answer.(map[string]any)
	if status != http.StatusOK || m["error"] != nil {
		c.t.Fatalf("%s: %d %v", method, status, answer)
	}
	return m["result"]
}

// becomes waits until a download has a status.
func (c *caller) becomes(gid, status string) {
	c.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); ; <-tick.C {
		got, _ := c.call("aria2.tellStatus", gid, []string{"status", "completedLength"}).(map[string]any)
		if got["status"] == status && (status != "active" || got["completedLength"] != "0") {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s does not become %s: %v", gid, status, got)
		}
	}
}

// socket is a WebSocket.
type socket struct {
	t *testing.T
	*websocket.Conn
}

func (c *caller) socket() *socket {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	s, _, err := websocket.Dial(ctx, strings.Replace(c.url, "http", "ws", 1), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.CloseNow() })
	return &socket{c.t, s}
}

// read returns the next message, decoded.
func (s *socket) read() map[string]any {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	_, text, err := s.Read(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return m
}

// send sends text.
func (s *socket) send(text string) {
	s.t.Helper()
	if err := s.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}
