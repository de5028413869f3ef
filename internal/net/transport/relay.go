package transport

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// relayHeadStart is how long the relay has to connect a tunnel before a link tries too.
const relayHeadStart = 250 * time.Millisecond

// notRelayed are domains that refuse or suspect clients with the address of a hosting company: streaming services and
// banks. Their users are better off with their own address.
var notRelayed = []string{
	"netflix.com", "nflxvideo.net", "disneyplus.com", "dssott.com", "primevideo.com", "hulu.com", "max.com",
	"hbomax.com", "spotify.com", "paramountplus.com", "peacocktv.com", "dazn.com", "bbc.co.uk", "bbci.co.uk", "itv.com",
	"channel4.com", "zdf.de", "ardmediathek.de", "paypal.com", "chase.com", "bankofamerica.com", "wellsfargo.com",
	"citi.com", "hsbc.com", "barclays.co.uk", "sparkasse.de", "ing.de",
}

// Relay returns the state of the relay, false if none is used.
func (t *Transport) Relay() (relay.Status, bool) {
	if !t.hasRelay() {
		return relay.Status{}, false
	}
	return t.relay.Status(), true
}

// relayed returns how many bytes the lanes have carried, by name of the link, and the number of tunnels through the
// relay.
func (t *Transport) relayed() (carried map[string]int64, tunnels int) {
	s, ok := t.Relay()
	if !ok {
		return nil, 0
	}
	carried = make(map[string]int64, len(s.Lanes))
	for _, l := range s.Lanes {
		carried[l.Link] = l.Bytes
	}
	return carried, s.Streams
}

// dialRelay connects through the relay.
func (t *Transport) dialRelay(ctx context.Context, addr string) (net.Conn, error) {
	c, err := t.relay.Dial(ctx, addr)
	t.placer.Wake()
	return c, err
}

// hasRelay reports whether there is a relay.
func (t *Transport) hasRelay() bool {
	return t.relay != nil && (t.paired == nil || t.paired.Any())
}

// relays reports whether a tunnel to addr may use the relay: private destinations belong to this network, mail needs an
// address of its own, and lanes may be on metered links.
func (t *Transport) relays(ctx context.Context, addr string) bool {
	o := OptionsOf(ctx)
	if !t.hasRelay() || o.Request().Unmetered {
		return false
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "25" || !link.Public(host) {
		return false
	}
	except := slices.Clone(notRelayed)
	for _, h := range t.live.Load().Relay.Except {
		except = append(except, plainHost(h))
	}
	return !spread.Names(except, plainHost(host)) && !spread.Names(except, plainHost(o.Flow.Host))
}

// viaRelay is the link name reported for a request that used the relay.
const viaRelay = "relay"

// detour returns the relay as the link for a request that is not divided, if the request may take it.
func (t *Transport) detour(r *http.Request) (link.Link, bool) {
	if t.live.Load().Relay.Mode != config.RelayAll || !t.relays(r.Context(), origin.HostPort(r.URL)) {
		return link.Link{}, false
	}
	return link.Link{Name: viaRelay, Path: relayPath{t}}, true
}

// relayPath is the Path of the relay.
type relayPath struct{ t *Transport }

// Dial implements link.Path. The relay resolves the name.
func (p relayPath) Dial(ctx context.Context, _, addr string) (net.Conn, link.Info, error) {
	c, err := p.t.dialRelay(ctx, addr)
	if err != nil {
		return nil, link.Info{}, &link.DialError{Link: viaRelay, Op: link.OpConnect, Err: err}
	}
	return c, link.Info{}, nil
}

// Probe implements link.Path.
func (relayPath) Probe(context.Context) error { return link.ErrNothingToProbe }

// raceRelay connects through the relay, or over one link if the relay is away, fails or is late. The losing connection
// is closed before it returns. An error is that of the link.
func (t *Transport) raceRelay(ctx context.Context, addr string) (net.Conn, string, error) {
	type dialed struct {
		conn   net.Conn
		link   string
		err    error
		direct bool
	}
	inner, cancel := context.WithCancel(ctx)
	results := make(chan dialed)
	running := 1
	defer func() {
		cancel()
		for ; running > 0; running-- {
			if r := <-results; r.err == nil {
				r.conn.Close()
			}
		}
	}()
	go func() {
		c, err := t.dialRelay(inner, addr)
		if err == nil && t.paired != nil { // the app wants to know when bytes move
			c = t.passThrough.Relayed(inner, addr, c)
		}
		results <- dialed{c, "", err, false}
	}()
	timer := time.NewTimer(relayHeadStart)
	defer timer.Stop()
	started := false
	direct := func() {
		if started {
			return
		}
		started = true
		running++
		go func() {
			c, name, err := t.dialDirect(inner, addr)
			results <- dialed{c, name, err, true}
		}()
	}
	var failed error
	for {
		select {
		case <-timer.C:
			direct()
		case r := <-results:
			running--
			switch {
			case r.err == nil:
				return r.conn, r.link, nil
			case r.direct:
				failed = r.err
			default:
				direct()
			}
			if running == 0 {
				return nil, "", failed
			}
		}
	}
}

// Pair adds the relay of an invitation, see [relay.Pairings.Pair]; only with Config.Paired. It connects over the first
// link that can.
func (t *Transport) Pair(ctx context.Context, invitation string) (address string, err error) {
	return t.paired.Pair(ctx, invitation, func(ctx context.Context, addr string) (net.Conn, error) {
		t.Await(ctx) // the program may have started only now
		c, _, err := t.dialDirect(ctx, addr)
		return c, err
	})
}

// Forget ends the use of a relay that Pair added. Its error is [relay.ErrNotSaved].
func (t *Transport) Forget(address string) error { return t.paired.Forget(address) }
