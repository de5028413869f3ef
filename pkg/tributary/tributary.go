package tributary

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/transport"
)

// Options say how a Transport works. The zero value uses every link that leads out.
type Options struct {
	// Links names the interfaces to use, whatever their kind. Empty means all that have an address and a default route;
	// tunnels, bridges and containers' devices are left out.
	Links []string

	// Scheduler names the algorithm that gives ranges to links. Empty means "confluence".
	Scheduler string

	// Memory bounds the bytes that wait for their turn, all responses together, and MemoryPerResponse those of one response.
	// Zero means 64 MiB and 16 MiB.
	Memory, MemoryPerResponse int64

	// MinSize is the size in bytes up to which objects are not divided. Zero means 128 KiB.
	MinSize int64

	// WaitForLink is how long a response waits when no link is left. Zero means a minute.
	WaitForLink time.Duration

	// RootCAs verify the certificates of https servers. Nil means the system's.
	RootCAs *x509.CertPool

	// Logger gets what happens to links and transfers, without URLs above debug level. Nil means none.
	Logger *slog.Logger
}

// Transport is an http.RoundTripper over all links. Make it with New, and Close it when its last response is closed. It is
// safe for concurrent use.
type Transport struct {
	t     *transport.Transport
	stop  func()
	close sync.Once

	mu     sync.Mutex
	closed bool
}

// New finds the links, follows their changes and returns a Transport over them. It waits up to 5 seconds for the first link;
// requests fail with ErrNoLink while there is none.
func New(o Options) (*Transport, error) {
	cfg := config.Default()
	cfg.Links = o.Links
	set(&cfg.Scheduler, o.Scheduler)
	set(&cfg.Budget, config.Bytes(o.Memory))
	set(&cfg.TransferWindow, config.Bytes(o.MemoryPerResponse))
	set(&cfg.Threshold, config.Bytes(o.MinSize))
	set(&cfg.WaitForLink, o.WaitForLink)
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t, err := transport.Own(cfg, o.RootCAs, log)
	if err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	return start(t)
}

func start(t *transport.Transport) (*Transport, error) {
	ctx := context.Background()
	stop, err := t.Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	t.Await(ctx)
	return &Transport{t: t, stop: stop}, nil
}

// set changes a default to what is given.
func set[T comparable](value *T, given T) {
	var zero T
	if given != zero {
		*value = given
	}
}

// userAgent is what net/http's own Transport sends for a request that names none.
const userAgent = "Go-http-client/1.1"

// RoundTrip implements http.RoundTripper. It divides a GET over the links if it can, and sends every other request over one
// link. Unlike http.Transport it never asks for a compressed response on its own, since ranges of one cannot be joined, and
// uses no proxy.
//
// The Body of a divided response implements io.WriterTo. An error is an *Error, or that of the request's context.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.check(r); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	ctx := r.Context()
	if report, ok := ctx.Value(reportKey{}).(*Report); ok {
		ctx = transport.WithUsage(ctx, &report.used)
	}
	q := r.WithContext(ctx)
	if _, ok := r.Header["User-Agent"]; !ok {
		q.Header = r.Header.Clone()
		if q.Header == nil {
			q.Header = http.Header{}
		}
		q.Header.Set("User-Agent", userAgent)
	}
	resp, err := t.t.RoundTrip(q)
	if err != nil {
		return nil, wrap(err)
	}
	resp.Request = r
	if b, ok := resp.Body.(content); ok {
		resp.Body = &body{b}
	}
	return resp, nil
}

func (t *Transport) check(r *http.Request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case r.URL == nil || r.URL.Host == "":
		return errors.New("tributary: no host in the request's URL")
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return fmt.Errorf("tributary: unsupported protocol scheme %q", r.URL.Scheme)
	}
	return nil
}

// content is what the Transport gives for a divided response.
type content interface {
	io.ReadCloser
	io.WriterTo
	WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (prefix int64, err error)
}

// body is the content of a divided response. Its errors are those of RoundTrip.
type body struct{ content }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.content.Read(p)
	return n, wrap(err)
}

// WriteTo implements io.WriterTo.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	n, err := b.content.WriteTo(w)
	return n, wrap(err)
}

// WriteAtTo writes the content in the order in which it comes.
func (b *body) WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (int64, error) {
	n, err := b.content.WriteAtTo(w, progress)
	return n, wrap(err)
}

// Download sends r, follows redirects as an http.Client does, and writes the content of the response to w, beginning at
// offset 0. Bytes are written in the order in which they come, each once, by one goroutine at a time; nothing waits for its
// turn in memory. It returns the response, whose Body is empty, and how many bytes at the beginning of w are complete: all
// of them if err is nil.
//
// A response other than 200 OK, 203 and 206 Partial Content is a *StatusError, and nothing is written.
func (t *Transport) Download(ctx context.Context, r *http.Request, w io.WriterAt) (resp *http.Response, n int64, err error) {
	resp, err = (&http.Client{Transport: t}).Do(r.WithContext(ctx))
	if err != nil {
		return nil, 0, err
	}
	from := resp.Body
	resp.Body = http.NoBody
	defer from.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo, http.StatusPartialContent:
	default:
		return resp, 0, &StatusError{resp.StatusCode}
	}
	if b, ok := from.(*body); ok {
		n, err = b.WriteAtTo(w, nil)
	} else {
		n, err = io.Copy(io.NewOffsetWriter(w, 0), from)
	}
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	return resp, n, err
}

// DialContext connects to addr ("host:port") over one link, the best that can, for what is not HTTP. network is "tcp".
func (t *Transport) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("tributary: dial %s: only tcp can be dialed", network)
	}
	c, _, err := t.t.DialTunnel(ctx, addr)
	return c, wrap(err)
}

// Close ends the Transport: it closes idle connections and no longer follows the links. Responses must be closed before.
func (t *Transport) Close() error {
	t.close.Do(func() {
		t.mu.Lock()
		t.closed = true
		t.mu.Unlock()
		t.stop()
		t.t.Close()
	})
	return nil
}

// CloseIdleConnections closes connections that no request uses, as http.Client.CloseIdleConnections asks for.
func (t *Transport) CloseIdleConnections() { t.t.Close() }

// Link is a network link.
type Link struct {
	Name     string        // of the interface
	State    string        // "up", "suspect", "banned", "probing" or "down"
	Reason   string        // why it is in this state, empty when up
	Rate     float64       // bytes of content per second, all responses, without second copies
	RTT      time.Duration // smoothed round-trip time, 0 = not known
	Received int64         // bytes of content since New
	Wasted   int64         // of these, bytes that another link brought too or nobody wanted
}

// Links returns the links as they are now.
func (t *Transport) Links() []Link {
	var all []Link
	for _, l := range t.t.Status().Links {
		all = append(all, Link{Name: l.Name, State: l.State, Reason: l.Reason, Rate: l.Goodput, RTT: l.RTT, Received: l.Bytes, Wasted: l.Waste})
	}
	return all
}
