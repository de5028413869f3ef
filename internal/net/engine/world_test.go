package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// world is origins behind links in the virtual time of a synctest bubble. Each origin serves an object of the same size,
// paced, over every link.
type world struct {
	mu      sync.Mutex
	changed chan struct{}     // closed by the next change
	dead    map[string]bool   // links over which nothing comes back
	starved map[string]string // by address: over this link the origin sends a head, a few bytes and no more
	shut    map[string]string // by address: over this link the origin cannot be reached, as an ICMP message says
	slow    map[string]string // by address: over this link the origin hardly sends anything
	lies    map[string]string // by address: over this link the origin has another object, under the same headers
	probed  []string          // "address over link" of dials without a request
	sent    []time.Duration   // when they were made, since the bubble began
	to      []string          // the one address that they were restricted to, "invalid IP" for none
	warm    map[string]int    // by "address over link": connections of probes that Open may use
	kernel  bool              // packets that a dead link swallowed are sent again, as a kernel does
	began   time.Time
	brought map[string]int64     // bytes of bodies delivered, by link
	opened  map[string]int       // connections that Open made, by link
	channel map[string]time.Time // if not nil, all links share one channel: when what each delivers will have arrived

	full    map[string]bool                             // links over which no further connection to an origin may be made
	answers func(ctx context.Context, link string) bool // reports whether something else on a link answers; nil = there is none
}

const (
	worldSize = 8 * mib
	worldRTT  = 10 * time.Millisecond
	beforeIt  = 10 << 10 // bytes that arrive before a starved connection falls silent
	chunk     = 16 << 10 // bytes that arrive in each chunkTime
	chunkTime = 80 * time.Millisecond
	slowChunk = chunk / 25
)

func newWorld() *world {
	return &world{
		changed: make(chan struct{}), dead: map[string]bool{}, starved: map[string]string{}, shut: map[string]string{},
		slow: map[string]string{}, lies: map[string]string{}, warm: map[string]int{}, began: time.Now(),
		brought: map[string]int64{}, opened: map[string]int{},
	}
}

// isDead reports whether a link swallows packets now.
func (w *world) isDead(l string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead[l]
}

// resend sends a packet again after wait, twice that, ..., until a link carries it or it is given up.
func (w *world) resend(ended <-chan struct{}, l string, wait time.Duration) (arrived bool) {
	for ; w.isDead(l); wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ended:
			return false
		}
	}
	return true
}

func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait waits until ok returns true, or until ended is closed.
func (w *world) wait(ended <-chan struct{}, ok func() bool) bool {
	for {
		w.mu.Lock()
		holds, changed := ok(), w.changed
		w.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-ended:
			return false
		}
	}
}

// connect is a TCP handshake.
func (w *world) connect(ctx context.Context, l, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	time.Sleep(worldRTT)
	near := linkA.Near(netip.MustParseAddrPort(numeric(addr)).Addr())
	if w.kernel && !near && !w.resend(ctx.Done(), l, time.Second) {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	if !w.wait(ctx.Done(), func() bool { return near || !w.dead[l] }) {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut[addr] == l {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	return nil
}

// Open implements Opener.
func (w *world) Open(ctx context.Context, l link.Link, t Target) (Conn, error) {
	w.mu.Lock()
	key := t.Addr + " over " + l.Name
	warm := w.warm[key] > 0
	w.opened[l.Name]++
	if warm {
		w.warm[key]--
	}
	w.mu.Unlock()
	if !warm {
		if err := w.connect(ctx, l.Name, t.Addr); err != nil {
			return nil, &AttemptError{Op: "dial", Link: l.Name, Outcome: fault.Unreachable, Err: err}
		}
	}
	return &worldConn{w: w, link: l.Name, addr: t.Addr, asks: make(chan RangeRequest, 16), gone: make(chan struct{})}, nil
}

// Warm implements Opener.
func (w *world) Warm(l link.Link, addr string, c net.Conn, _ link.Info) {
	c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warm[addr+" over "+l.Name]++
}

// worldPath is a link's way into the world, which probes use.
type worldPath struct {
	w    *world
	link string
}

// Probe implements link.Path.
func (p *worldPath) Probe(ctx context.Context) error {
	switch {
	case p.w.answers == nil:
		return link.ErrNothingToProbe
	case !p.w.answers(ctx, p.link):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Dial implements link.Path.
func (p *worldPath) Dial(ctx context.Context, _, addr string) (net.Conn, link.Info, error) {
	p.w.mu.Lock()
	p.w.probed = append(p.w.probed, addr+" over "+p.link)
	p.w.sent = append(p.w.sent, time.Since(p.w.began))
	only, _ := link.IsOnce(ctx)
	p.w.to = append(p.w.to, only.String())
	full := p.w.full[p.link]
	p.w.mu.Unlock()
	if full {
		return nil, link.Info{}, &link.NoSlotError{Link: p.link, Host: hostOf(addr), Most: 1}
	}
	if err := p.w.connect(ctx, p.link, addr); err != nil {
		return nil, link.Info{}, err
	}
	c, other := net.Pipe()
	other.Close()
	return c, link.Info{}, nil
}

// probedAt returns when the probes so far were made, and probes returns the addresses of those since its last call.
func (w *world) probedAt() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func (w *world) probes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.probed
	w.probed = nil
	return p
}

type worldConn struct {
	w          *world
	link, addr string
	asks       chan RangeRequest
	once       sync.Once
	gone       chan struct{}
	got        int64
}

func (c *worldConn) Send(a RangeRequest) error { c.asks <- a; return nil }
func (c *worldConn) Cut(uint32, int64) bool    { return false }
func (c *worldConn) Release()                  { c.Close() }

func (*worldConn) Received() (link.Counters, bool)     { return link.Counters{}, false }
func (*worldConn) Sample() (transfer.PathSample, bool) { return transfer.PathSample{}, false }
func (*worldConn) Behind() bool                        { return false }

func (c *worldConn) Close() { c.once.Do(func() { close(c.gone) }) }

func (c *worldConn) Info() ConnInfo {
	host, _, _ := net.SplitHostPort(c.addr)
	return ConnInfo{RTT: worldRTT, Remote: net.JoinHostPort(addrOf(host), "80")}
}

// numeric returns "host:port" with the address of the host.
func numeric(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if _, err := netip.ParseAddr(host); err == nil {
		return addr
	}
	return net.JoinHostPort(addrOf(host), port)
}

// addrOf returns the address of a host of the world. Those of one domain are in one network.
func addrOf(host string) string {
	domain, n := host[strings.LastIndexByte(host, '.')+1:], byte(0)
	for _, b := range []byte(domain) {
		n = n*31 + b
	}
	return net.IPv4(198, 18, n, byte(len(host))).String()
}

func (c *worldConn) Next() (*RangeResponse, error) {
	canceled := &AttemptError{Op: "head", Link: c.link, Outcome: fault.Canceled, Err: net.ErrClosed}
	var a RangeRequest
	select {
	case a = <-c.asks:
	case <-c.gone:
		return nil, canceled
	}
	if !c.flow() {
		return nil, canceled
	}
	r := a.Range.Clip(segment.Range{End: worldSize})
	h := http.Header{
		"Etag": {`"v"`}, "Content-Type": {"a/b"}, "Content-Length": {strconv.FormatInt(r.Len(), 10)},
		"Content-Range": {byterange.Content{Range: r, Total: worldSize}.String()},
	}
	b, lie := make([]byte, r.Len()), byte(0)
	if c.w.lies[c.addr] == c.link {
		lie = 1
	}
	for i := range b {
		b[i] = at(r.Start+int64(i)) + lie
	}
	return &RangeResponse{
		Response: &http.Response{StatusCode: http.StatusPartialContent, Header: h, ContentLength: r.Len(), Body: io.NopCloser(&pacedBody{c, bytes.NewReader(b)})},
		Range:    r, ID: Identity{Total: worldSize, Validator: `"v"`, ETag: `"v"`, Type: "a/b"},
	}, nil
}

// flow waits until bytes arrive over the link, or the connection is closed.
func (c *worldConn) flow() (open bool) {
	select {
	case <-c.gone:
		return false
	default:
	}
	if c.w.kernel && !c.w.resend(c.gone, c.link, 200*time.Millisecond) {
		return false
	}
	return c.w.wait(c.gone, func() bool {
		return !c.w.dead[c.link] && (c.w.starved[c.addr] != c.link || c.got < beforeIt)
	})
}

type pacedBody struct {
	c *worldConn
	r *bytes.Reader
}

func (b *pacedBody) Read(p []byte) (int, error) {
	size := chunk
	b.c.w.mu.Lock()
	switch {
	case b.c.w.channel != nil:
		size = chunk / 4
	case b.c.w.slow[b.c.addr] == b.c.link:
		size = slowChunk
	}
	took := b.c.w.turn(b.c.link, min(len(p), size))
	b.c.w.mu.Unlock()
	time.Sleep(took)
	if !b.c.flow() {
		return 0, &AttemptError{Op: "body", Link: b.c.link, Outcome: fault.Canceled, Err: net.ErrClosed}
	}
	n, err := b.r.Read(p[:min(len(p), size)])
	b.c.got += int64(n)
	b.c.w.mu.Lock()
	b.c.w.brought[b.c.link] += int64(n)
	b.c.w.mu.Unlock()
	return n, err
}

// turn returns how long n bytes take over a link. Links on one channel each get a part of the time, which changes every second, or
// all of it while no other one delivers anything; pauses between reads are made up for. The lock is held.
func (w *world) turn(link string, n int) time.Duration {
	if w.channel == nil {
		return chunkTime
	}
	now, quarters := time.Now(), time.Duration(4)
	for other, until := range w.channel {
		if other == link || now.Sub(until) > 3*chunkTime {
			continue
		}
		if quarters = []time.Duration{1, 3, 2}[now.Unix()%3]; link < other {
			quarters = 4 - quarters
		}
	}
	until := w.channel[link]
	if least := now.Add(-chunkTime); until.Before(least) {
		until = least
	}
	until = until.Add(chunkTime / 2 * time.Duration(n) / chunk * 4 / quarters)
	w.channel[link] = until
	return until.Sub(now)
}

// newWorldEngine returns an engine whose links "a" and "b" lead to the world; it runs until the test ends.
func newWorldEngine(t *testing.T, w *world, change func(*Config)) *Engine {
	t.Helper()
	cfg := Config{
		Opener: w, Log: slog.New(slog.DiscardHandler), Scheduler: scheduler("alg3"), Budget: 64 * mib, Window: 4 * mib,
		Threshold: 64 << 10, WaitForLink: time.Minute,
	}
	if change != nil {
		change(&cfg)
	}
	e := New(cfg)
	e.SetLinks([]link.Link{{Name: "a", Metric: 1, Path: &worldPath{w, "a"}}, {Name: "b", Metric: 2, Terms: policy.Terms{Metered: true}, Path: &worldPath{w, "b"}}})
	go e.Run(t.Context())
	return e
}

// download gets the world's object from an origin until it is complete or the test ends, and checks its bytes.
func download(t *testing.T, e *Engine, addr string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := e.Get(t.Context(), &Request{
			Target: Target{Scheme: "http", Host: addr, Addr: addr, Path: "/"}, Header: http.Header{},
		})
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", addr, err)
			}
			return
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(struct{ io.Reader }{resp.Body})
		if t.Context().Err() != nil {
			return
		}
		if err != nil || int64(len(got)) != resp.ContentLength {
			t.Errorf("%s: %d of %d bytes, %v", addr, len(got), resp.ContentLength, err)
		}
		for i, c := range got {
			if c != at(int64(i)) {
				t.Errorf("%s: byte %d is wrong", addr, i)
				return
			}
		}
	}()
	return done
}

// linkState returns the state of a link for everybody.
func linkState(e *Engine, name string) string {
	for _, l := range e.Status().Links {
		if l.Name == name {
			return l.State
		}
	}
	return ""
}
