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
	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Options configure a Transport. The zero value uses every link that has a route to the internet.
type Options struct {
	// Links names the interfaces to use, whatever their kind; they need not exist yet. Empty means all that have an
	// address and a default route, except tunnels, bridges and the devices of containers.
	Links []string

	// Scheduler names the algorithm that gives ranges to links. Empty means "confluence".
	Scheduler string

	// Memory limits the bytes that wait for their turn, over all responses together. Zero means 64 MiB.
	Memory int64

	// MemoryPerResponse limits the bytes that wait in one response. It is at least 1 MiB and at most Memory. Zero means
	// 16 MiB, or Memory if that is less.
	MemoryPerResponse int64

	// MinSize is the size in bytes up to which objects are not divided. Zero means 128 KiB.
	MinSize int64

	// WaitForLink is how long a response waits when no link is left. Zero means one minute.
	WaitForLink time.Duration

	// RootCAs verify the certificates of https servers. Nil means the system's roots.
	RootCAs *x509.CertPool

	// Logger receives the events of links and transfers; URLs only at debug level. Nil means no logging.
	Logger *slog.Logger
}

// settings returns the configuration that corresponds to o.
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

// optionNames translates keys of the configuration into names of Options.
var optionNames = strings.NewReplacer(
	"links", "Links", "scheduler", "Scheduler", "budget", "Memory", "transfer_window", "MemoryPerResponse", "threshold",
	"MinSize", "wait_for_link", "WaitForLink",
)

// set overrides a default if a value was given.
func set[T comparable](value *T, given T) {
	var zero T
	if given != zero {
		*value = given
	}
}

// Transport is an [http.RoundTripper] over all links. Create it with [New]. It keeps connections and what it has
// learned about links and servers, so it should be reused, not created for each request. It is safe for concurrent use
// by several goroutines.
//
// It does not follow redirects and does not keep cookies; that is the job of [http.Client].
type Transport struct {
	t    *transport.Transport
	stop func() // stops following the links and waits for that

	ctx   context.Context // ends with Close
	close context.CancelFunc
	once  sync.Once
}

// New finds the links, follows their changes and returns a Transport over them. It waits up to 5 seconds for the first
// link. It also succeeds without one: requests then fail with ErrNoLink until there is a link.
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

// RoundTrip implements [http.RoundTripper]. It divides a GET over the links if it can, and sends every other request
// over one link. An error is an [*Error], ErrClosed, the cause of the context's end, or describes a fault of the
// request.
//
// It differs from [http.Transport] in three ways: it never requests a compressed response on its own, since ranges of
// one cannot be joined; it does not use a proxy; and the TLS field of a divided response is nil and its Proto HTTP/1.1,
// since it may come over several connections. The Body of a divided response implements [io.WriterTo].
//
// Whether a 206 has the range that r asked for is for the caller to check, as with any RoundTripper; Download does.
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
	q := r.WithContext(transport.With(ctx, func(o *transport.Options) { o.Usage = used }))
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
		stop() // the connection belongs to the caller
		return resp, nil
	}
	if from, ok := resp.Body.(divided); ok {
		resp.Body = &dividedBody{body{from: from, ctx: ctx, end: end}, from}
	} else {
		resp.Body = &body{from: resp.Body, ctx: ctx, end: end}
	}
	return resp, nil
}

// check returns an error if r cannot be sent.
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
// beginning at offset 0. Bytes are written in the order in which they arrive, each once, by one goroutine at a time;
// none wait for their turn in memory.
//
// If r has a Range field with one range, a 206 must have exactly that range, and its first byte goes to offset 0.
// Without a Range, or with another range, a 206 is ErrInconsistent. Several ranges are written as the response has
// them.
//
// It returns the response, whose Body is empty, and the number of complete bytes at the beginning of w: all of them if
// err is nil. With an error, there may be further bytes after a gap. A response other than 200 OK, 203 or 206 Partial
// Content is a [*StatusError], and nothing is written. Errors of w are returned unchanged; others are those of
// [http.Client.Do], or of reading a Body.
func (t *Transport) Download(ctx context.Context, r *http.Request,
	w io.WriterAt,
) (resp *http.Response, n int64, err error) {
	resp, err = (&http.Client{Transport: t}).Do(r.WithContext(ctx))
	if err != nil {
		return nil, 0, err
	}
	from := resp.Body
	resp.Body = http.NoBody
	defer from.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
	case http.StatusPartialContent:
		if err := unasked(resp); err != nil {
			return resp, 0, &Error{Kind: ErrInconsistent, Err: err}
		}
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

// unasked returns an error if a 206 is not the range that its request asked for.
func unasked(resp *http.Response) error {
	fields := resp.Request.Header.Values("Range")
	if len(fields) == 0 {
		return errors.New("the server sent a part of the object, although all of it was requested")
	}
	asked, one := byterange.ParseRange(fields[0])
	if len(fields) > 1 || !one {
		return nil
	}
	got, err := byterange.ParseContentRange(resp.Header.Get("Content-Range"))
	want, ok := asked.Resolve(got.Total)
	if got.Total < 0 && asked.First >= 0 { // then nobody knows where the object ends
		want, ok = byterange.Range{Start: asked.First, End: min(asked.End, got.Range.End)}, true
	}
	if err != nil || !ok || len(resp.Header.Values("Content-Range")) > 1 || got.Range != want {
		return fmt.Errorf("the server sent another range of the object (%v) than the requested one", got.Range)
	}
	return nil
}

// DialContext connects to addr ("host:port") over the best link that can reach it, for protocols other than HTTP.
// network is "tcp". The connection outlives ctx and the Transport.
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

// Close closes the Transport: running requests and reads of open Bodies fail with ErrClosed, idle connections are
// closed, and the links are no longer followed. Bodies still have to be closed. Close may be called more than once and
// returns nil.
func (t *Transport) Close() error {
	t.once.Do(func() {
		t.close()
		t.stop()
		t.t.Close()
	})
	return nil
}

// CloseIdleConnections closes the connections that no request uses, as [http.Client.CloseIdleConnections] expects. The
// Transport remains usable.
func (t *Transport) CloseIdleConnections() { t.t.Close() }

// Link is a network link.
type Link struct {
	Name     string        // name of the interface
	State    string        // "up", "suspect", "banned", "probing" or "down"
	Reason   string        // reason for the state, empty when up
	Rate     float64       // bytes of content per second over all responses, without second copies
	RTT      time.Duration // smoothed round-trip time, 0 = not known
	Received int64         // bytes of content since New
	Wasted   int64         // bytes of Received that another link also delivered or that were not needed
}

// Links returns the current links, including those that went down since New. It can be called after Close.
func (t *Transport) Links() []Link {
	var all []Link
	for _, l := range t.t.Status().Links {
		all = append(all, Link{
			Name:     l.Name,
			State:    l.State,
			Reason:   l.Reason,
			Rate:     l.Goodput - l.UndividedRate,
			RTT:      time.Duration(l.RTT * float64(time.Second)),
			Received: l.Bytes - l.UndividedBytes,
			Wasted:   l.Waste,
		})
	}
	return all
}
