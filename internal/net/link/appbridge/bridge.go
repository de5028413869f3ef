package appbridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/net/allowance"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// ErrGone says that the app is gone: there are no links without it.
var ErrGone = errors.New("the app that owns the networks is gone")

const (
	replyTime = 5 * time.Second // for the app to answer about sockets, and to read messages
	unread    = 64              // messages to the app that may wait
	asked     = 256             // questions of a type that may be open
)

// Bridge represents the app that owns the networks. Make it with Dial.
type Bridge struct {
	log    *slog.Logger
	links  *discover.Static
	events *net.UnixConn
	binds  *net.UnixConn
	out    chan []byte      // lines to the writer
	sock   chan bindRequest // to the goroutine of binds
	orders chan *Order
	places atomic.Int64 // orders that are open

	pairings chan Pairing
	tokens   chan string // capacity 1
	told     atomic.Pointer[told]

	limit chan struct{} // capacity 1: Limits may have changed
	path  string        // of the app's socket
	gone  chan struct{} // closed when the app is gone or says stop
	parts sync.WaitGroup
	once  sync.Once

	mu        sync.Mutex
	lastID    uint64
	questions map[uint64]question
	open      map[string]int // questions by type
}

// question is a question that the app has not answered yet.
type question struct {
	about  string // its type
	answer chan<- inMessage
}

// told is what the app reports besides the links.
type told struct {
	limits   map[string]allowance.Limit
	cellular string // account of the mobile data that comes up if it is wanted; "" = not known
	apps     apps
}

// Dial connects to the app that listens at path, "@name" for an abstract one. ctx bounds the wait for its greeting.
func Dial(ctx context.Context, path string, log *slog.Logger) (*Bridge, error) {
	h := &Bridge{
		log:       log,
		links:     discover.NewStatic(),
		out:       make(chan []byte, unread),
		sock:      make(chan bindRequest),
		gone:      make(chan struct{}),
		orders:    make(chan *Order),
		path:      path,
		questions: map[uint64]question{},
		open:      map[string]int{},
		limit:     make(chan struct{}, 1),
		pairings:  make(chan Pairing, maxPairings),
		tokens:    make(chan string, 1),
	}
	h.told.Store(&told{})
	var err error
	if h.events, err = open(ctx, path, hello{"hello", Version, channelEvents, 0}); err == nil {
		h.binds, err = open(ctx, path, hello{"hello", Version, channelBind, 0})
	}
	if err != nil {
		if h.events != nil {
			h.events.Close()
		}
		return nil, fmt.Errorf("app socket %s: %w", path, err)
	}
	lines := bufio.NewScanner(h.events)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	if err := greeted(ctx, h.events, lines); err != nil {
		h.events.Close()
		h.binds.Close()
		return nil, fmt.Errorf("app socket %s: %w", path, err)
	}
	h.parts.Go(func() { h.read(lines) })
	h.parts.Go(h.write)
	h.parts.Go(h.serveBinds)
	return h, nil
}

// open makes one connection and sends its greeting.
func open(ctx context.Context, path string, greeting hello) (*net.UnixConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	line, _ := json.Marshal(greeting) // cannot fail
	if _, err := c.Write(append(line, '\n')); err != nil {
		c.Close()
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// greeted waits for the app's hello.
func greeted(ctx context.Context, c net.Conn, lines *bufio.Scanner) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var it hello
	switch {
	case !lines.Scan():
		return errors.Join(errors.New("no hello from the app"), lines.Err())
	case json.Unmarshal(lines.Bytes(), &it) != nil || it.Type != "hello":
		return errors.New("the first message of the app is not a hello")
	case it.Version != Version:
		return fmt.Errorf("the app uses version %d of the protocol, this program version %d: use those of one release",
			it.Version, Version)
	}
	return nil
}

// Watch implements discover.Source.
func (h *Bridge) Watch(ctx context.Context) (<-chan []link.Link, error) { return h.links.Watch(ctx) }

// Limits returns the limits of accounts by name. They apply to the links that Watch sends from then on.
func (h *Bridge) Limits() map[string]allowance.Limit { return h.told.Load().limits }

// Limited returns a channel that receives a value when Limits may have changed.
func (h *Bridge) Limited() <-chan struct{} { return h.limit }

// Cellular returns the account of the mobile data that comes up if it is wanted; "" = the app has not said.
func (h *Bridge) Cellular() string { return h.told.Load().cellular }

// Tokens returns a channel that receives the token of the gateway, a secret, when the app names it; "" = nobody has
// one.
func (h *Bridge) Tokens() <-chan string { return h.tokens }

// Gone returns a channel that is closed when the app is gone, or wants the program to stop.
func (h *Bridge) Gone() <-chan struct{} { return h.gone }

// Close closes the connections and waits for all goroutines to end.
func (h *Bridge) Close() {
	h.end()
	h.parts.Wait()
}

// end makes every goroutine end.
func (h *Bridge) end() {
	h.once.Do(func() {
		close(h.gone)
		h.events.Close()
		h.binds.Close()
		h.links.Set()
	})
}

// read handles the messages of the app.
func (h *Bridge) read(lines *bufio.Scanner) {
	defer h.end()
	for lines.Scan() {
		m, err := parse(lines.Bytes())
		if err != nil {
			h.log.Error("malformed message from the app that owns the networks", "error", err)
			return
		}
		switch m.Type {
		case "links":
			links, err := usable(m.Links)
			if err != nil {
				h.log.Warn("ignoring some links of the app", "error", err)
			}
			h.told.Store(&told{m.limits(), m.Cellular, m.Apps})
			select {
			case h.limit <- struct{}{}:
			default:
			}
			h.links.Set(links...) // after their limits
		case "resolved", "owned":
			if answer := h.drop(m.ID); answer != nil {
				answer <- m // it has room for one
			}
		case "fetch":
			if h.places.Add(1) > maxOrders {
				h.places.Add(-1)
				h.log.Warn("refused a download of the app: too many are open", "limit", maxOrders)
				continue
			}
			h.parts.Go(func() { h.take(m.ID) })
		case "gateway":
			select {
			case <-h.tokens: // the last one counts
			default:
			}
			h.tokens <- m.Token
		case "pair", "forget":
			h.pair(m)
		case "stop":
			return
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, net.ErrClosed) {
		h.log.Error("lost the connection to the app that owns the networks", "error", err)
	}
}

// write sends the messages in out to the app. An app that does not read them counts as gone.
func (h *Bridge) write() {
	defer h.end()
	for {
		select {
		case <-h.gone:
			return
		case line := <-h.out:
			_ = h.events.SetWriteDeadline(time.Now().Add(replyTime))
			if _, err := h.events.Write(line); err != nil {
				return
			}
		}
	}
}

// say sends a message without waiting; it reports whether the app may get it.
func (h *Bridge) say(m outMessage) bool {
	line, err := m.line()
	if err != nil {
		return false
	}
	select {
	case h.out <- line:
		return true
	default:
		return false
	}
}

// Want tells the app whether mobile data is wanted in addition to the present links. Mobile data costs battery, and the
// app may refuse.
func (h *Bridge) Want(cellular bool) { h.say(outMessage{Type: "want", Cellular: &cellular}) }

// Tell sends a status that the app may show its user; it must be fit for JSON. A status that cannot be sent in time is
// dropped, since the next one follows.
func (h *Bridge) Tell(status any) { h.say(outMessage{Type: "status", Status: status}) }

// Lookup asks the app to resolve a name over a link. It returns no address and no error if the name does not exist. It
// serves as a link.Resolver's Names.
func (h *Bridge) Lookup(ctx context.Context, l link.Link, name string) ([]netip.Addr, error) {
	m, err := h.ask(ctx, outMessage{Type: "resolve", Handle: l.Handle, Name: name})
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, ErrGone)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("look up %s over %s: %w", name, l.Name, err)
	case m.Error == notFound:
		return nil, nil
	case m.Error != "":
		return nil, fmt.Errorf("look up %s over %s: the app says %q", name, l.Name, m.Error)
	}
	for i := range m.Addrs {
		m.Addrs[i] = m.Addrs[i].Unmap()
	}
	return m.Addrs, nil
}
