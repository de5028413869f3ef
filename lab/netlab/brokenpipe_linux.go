package netlab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// brokenPipePort is where StartBrokenPipe's origin listens.
const brokenPipePort = 8083

// BrokenPipe is an origin that does not support pipelining, like some servers behind careless middleboxes. It answers
// requests correctly one after the other, ranges included, but drops the connection as soon as bytes of another request
// arrive before it has sent a complete answer.
type BrokenPipe struct {
	root   string
	serial atomic.Int64 // number of connections so far

	mu       sync.Mutex
	requests []Request
}

// StartBrokenPipe starts the origin in the server namespace; it runs until the lab's Close.
func (l *Lab) StartBrokenPipe() (*BrokenPipe, error) {
	b := &BrokenPipe{root: filepath.Join(l.Dir, "brokenpipe-objects")}
	if err := os.MkdirAll(b.root, 0o755); err != nil {
		return nil, fmt.Errorf("brokenpipe: %w", err)
	}
	if err := l.serveTCP(brokenPipePort, b.serve); err != nil {
		return nil, fmt.Errorf("brokenpipe: %w", err)
	}
	return b, nil
}

// Object makes the object of the given size.
func (b *BrokenPipe) Object(size Bytes) (Object, error) {
	o, err := writeObject(b.root, size)
	o.URL = "http://" + OriginAddr.String() + ":" + strconv.Itoa(brokenPipePort) + "/" + size.String()
	return o, err
}

// Requests returns the requests whose answers have ended.
func (b *BrokenPipe) Requests() ([]Request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Request(nil), b.requests...), nil
}

// serve answers a connection's requests until the client closes it or pipelines.
func (b *BrokenPipe) serve(conn net.Conn) {
	serial := b.serial.Add(1)
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil || in.Buffered() > 0 {
			return
		}
		began := time.Now()
		w := &answer{conn: conn, header: http.Header{}}
		stop := watch(conn, in)
		http.ServeFile(w, req, filepath.Join(b.root, filepath.Base(req.URL.Path)))
		early := stop()
		b.mu.Lock()
		b.requests = append(b.requests, Request{
			Method:     req.Method,
			Status:     w.status,
			Range:      req.Header.Get("Range"),
			Client:     host,
			BytesSent:  w.sent,
			Connection: serial,
			Protocol:   req.Proto,
			Began:      began,
		})
		b.mu.Unlock()
		if early || w.err != nil {
			return
		}
	}
}

// watch closes the connection if bytes or EOF arrive on it before stop is called; stop reports whether they did.
func watch(conn net.Conn, in *bufio.Reader) (stop func() (early bool)) {
	came := make(chan bool, 1)
	go func() {
		_, err := in.Peek(1)
		early := !errors.Is(err, os.ErrDeadlineExceeded)
		if early {
			conn.Close()
		}
		came <- early
	}()
	return func() bool {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		early := <-came
		_ = conn.SetReadDeadline(time.Time{})
		return early
	}
}

// answer is an http.ResponseWriter that writes directly to the connection; net/http's server would read ahead.
type answer struct {
	conn   net.Conn
	header http.Header
	status int
	sent   int64
	err    error
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	a.status = status
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	fmt.Fprintf(&b, "Date: %s\r\n", time.Now().UTC().Format(http.TimeFormat))
	_ = a.header.Write(&b) // a buffer never fails
	b.WriteString("\r\n")
	_, _ = a.write(b.Bytes()) // a.err keeps the error
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return a.write(p)
}

func (a *answer) write(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.conn.Write(p)
	a.sent += int64(n)
	a.err = err
	return n, err
}
