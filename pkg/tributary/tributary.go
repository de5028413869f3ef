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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/transport"
)

// Options say how a Transport works. The zero value uses every link that leads out.
type Options struct {
	// Links names the interfaces to use, whatever their kind; they need not exist yet. Empty means all that have an address
	// and a default route, except tunnels, bridges and the devices of containers.
	Links []string

	// Scheduler names the algorithm that gives ranges to links. Empty means "confluence".
	Scheduler string

	// Memory bounds the bytes that wait for their turn, of all responses together. Zero means 64 MiB.
	Memory int64

	// MemoryPerResponse bounds those of one response. It is at least 1 MiB and at most Memory. Zero means 16 MiB, or
	// Memory if that is less.
	MemoryPerResponse int64

	// MinSize is the size in bytes up to which objects are not divided. Zero means 128 KiB.
	MinSize int64

	// WaitForLink is how long a response waits when no link is left. Zero means a minute.
	WaitForLink time.Duration

	// RootCAs verify the certificates of https servers. Nil means the system's.
	RootCAs *x509.CertPool

	// Logger gets the events of links and transfers; URLs only at debug level. Nil means none.
	Logger *slog.Logger
}

// settings returns the configuration that o stands for.
func (o Options) settings() (config.Config, error) {
	cfg := config.Default()
	cfg.Remember = false // a library leaves no files behind
	cfg.Links = slices.Clone(o.Links)
	set(&cfg.Scheduler, o.Scheduler)
	set(&cfg.Budget, config.Bytes(o.Memory))
	if o.Memory > 0 {
		cfg.TransferWindow = min(cfg.TransferWindow, cfg.Budget)
	}
	set(&cfg.TransferWindow, config.Bytes(o.MemoryPerResponse))
	set(&cfg.Threshold, config.Bytes(o.MinSize))
	set(&cfg.WaitForLink, o.WaitForLink)
	if err := cfg.Validate(); err != nil {
		return cfg, fmt.Errorf("tributary: Options: %s", optionNames.Replace(err.Error()))
	}
	return cfg, nil
}

// optionNames makes names of Options of the configuration's keys.
var optionNames = strings.NewReplacer(
	"links", "Links", "scheduler", "Scheduler", "budget", "Memory", "transfer_window", "MemoryPerResponse", "threshold", "MinSize",
	"wait_for_link", "WaitForLink",
)

// set replaces a default with a given value.
func set[T comparable](value *T, given T) {
	var zero T
	if given != zero {
		*value = given
	}
}

// Transport is an [http.RoundTripper] over all links. Make it with [New]. It keeps connections and what it has learned of
// links and servers, so it should be used again, not made for each request. It is safe for concurrent use by several
// goroutines.
//
// It follows no redirects and keeps no cookies; that is for [http.Client].
type Transport struct {
	t    *transport.Transport
	stop func() // waits until the links are no longer followed

	ctx   context.Context // ends with Close
	close context.CancelFunc
	once  sync.Once
}

// New finds the links, follows their changes and returns a Transport over them. It waits up to 5 seconds for the first
// link. Without one it succeeds, too: requests fail with ErrNoLink until there is a link.
func New(o Options) (*Transport, error) {
	cfg, err := o.settings()
	if err != nil {
		return nil, err
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

func start(inner *transport.Transport) (*Transport, error) {
	t := &Transport{t: inner}
	t.ctx, t.close = context.WithCancel(context.Background())
	var err error
	if t.stop, err = inner.Start(t.ctx); err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	inner.Await(t.ctx)
	return t, nil
}

// userAgent is the default of net/http's own Transport.
const userAgent = "Go-http-client/1.1"

// RoundTrip implements [http.RoundTripper]. It divides a GET over the links if it can, and sends every other request over one
// link. An error is an [*Error], ErrClosed, the cause of the context's end, or describes a fault of the request.
//
// It differs from [http.Transport] in this: it never asks for a compressed response on its own, since ranges of one cannot
// be joined; it uses no proxy; the TLS field of a divided response is nil, and its Proto HTTP/1.1, since it may come over
// several connections. The Body of a divided response implements [io.WriterTo].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.check(r); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(t.ctx, func() { cancel(ErrClosed) })
	end := func() { stop(); cancel(nil) }
	used := &transport.Usage{}
	if report, ok := ctx.Value(reportKey{}).(*Report); ok {
		used = &report.used
	}
	q := r.WithContext(transport.WithUsage(ctx, used))
	if _, ok := r.Header["User-Agent"]; !ok {
		q.Header = r.Header.Clone()
		if q.Header == nil {
			q.Header = http.Header{}
		}
		q.Header.Set("User-Agent", userAgent)
	}
	resp, err := t.t.RoundTrip(q)
	if err != nil {
		err = wrap(ctx, err)
		end()
		return nil, err
	}
	resp.Request = r
	if resp.StatusCode == http.StatusSwitchingProtocols {
		stop() // the connection is the caller's
		return resp, nil
	}
	if from, ok := resp.Body.(divided); ok {
		resp.Body = &dividedBody{body{from: from, ctx: ctx, end: end}, from}
	} else {
		resp.Body = &body{from: resp.Body, ctx: ctx, end: end}
	}
	return resp, nil
}

// check returns why a request is not sent.
func (t *Transport) check(r *http.Request) error {
	switch {
	case t.ctx.Err() != nil:
		return ErrClosed
	case r.URL == nil || r.URL.Host == "":
		return errors.New("tributary: no host in the request's URL")
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return fmt.Errorf("tributary: unsupported protocol scheme %q", r.URL.Scheme)
	}
	return nil
}

// Download sends r with ctx, follows redirects as an [http.Client] does, and writes the content of the response to w,
// beginning at offset 0. Bytes are written in the order in which they come, each once, by one goroutine at a time; none wait
// for their turn in memory.
//
// It returns the response, whose Body is empty, and how many bytes at the beginning of w are complete: all of them if err is
// nil. With an error there may be further bytes behind a gap. A response other than 200 OK, 203 or 206 Partial Content is a
// [*StatusError], and nothing is written. Errors of w are returned as they are, others are those of [http.Client.Do], or of
// reading a Body.
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
	if b, ok := from.(*dividedBody); ok {
		n, err = b.writeAtTo(w)
	} else {
		n, err = io.Copy(io.NewOffsetWriter(w, 0), from)
	}
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	return resp, n, err
}

// DialContext connects to addr ("host:port") over one link, the best that can, for protocols other than HTTP. network is "tcp".
// The connection outlives ctx and the Transport.
func (t *Transport) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch {
	case t.ctx.Err() != nil:
		return nil, ErrClosed
	case network != "tcp":
		return nil, fmt.Errorf("tributary: dial %s: only tcp can be dialed", network)
	}
	c, _, err := t.t.DialTunnel(ctx, addr)
	return c, wrap(ctx, err)
}

// Close ends the Transport: requests under way fail with ErrClosed, as does reading a Body that is open; idle connections are
// closed, and the links no longer followed. Bodies have to be closed anyway. Close may be called more than once and
// returns nil.
func (t *Transport) Close() error {
	t.once.Do(func() {
		t.close()
		t.stop()
		t.t.Close()
	})
	return nil
}

// CloseIdleConnections closes the connections that no request uses, as [http.Client.CloseIdleConnections] asks for. The
// Transport can be used as before.
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

// Links returns the links as they are now, those included that went down since New. It can be called after Close.
func (t *Transport) Links() []Link {
	var all []Link
	for _, l := range t.t.Status().Links {
		all = append(all, Link{Name: l.Name, State: l.State, Reason: l.Cause, Rate: l.Goodput, RTT: l.RTT, Received: l.Bytes, Wasted: l.Waste})
	}
	return all
}
