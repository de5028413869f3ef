package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// phone is a Transport with free Wi-Fi and metered mobile data, which dial any address.
type phone struct {
	*Transport
	dialed  sync.Map     // "link address" -> true
	further atomic.Int64 // transfers that mobile data could help, ever
	running atomic.Int64 // transfers, ever
	spread  atomic.Int64 // tunnels that mobile data could help, ever
	pays    atomic.Bool  // some app may use mobile data
	helped  atomic.Int64 // transfers that mobile data could help, now
	source  *discover.Static
	dial    link.DialFunc
}

func newPhone(t *testing.T, state string, links ...link.Link) *phone {
	t.Helper()
	p := &phone{}
	p.pays.Store(true)
	cfg := config.Default()
	cfg.Threshold = 64 << 10
	p.dial = func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		p.dialed.Store(l.Name+" "+addr, true)
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	p.source = discover.NewStatic(p.dial.Over(links...)...)
	var err error
	p.Transport, err = New(Config{
		Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: p.source,
		RelayState: state, Paired: true, Pays: p.pays.Load,
		Running: func(n, further int) {
			p.running.Add(int64(n))
			p.further.Add(int64(further))
			p.helped.Store(int64(further))
		},
		Undivided: func(_, spread int) { p.spread.Add(int64(spread)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := p.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); p.Close() })
	return p
}

// used reports whether a link was used to dial an address, "" = any.
func (p *phone) used(name, addr string) (yes bool) {
	p.dialed.Range(func(k, _ any) bool {
		yes = yes || strings.HasPrefix(k.(string), name+" "+addr)
		return true
	})
	return yes
}

func wifi() link.Link { return link.Link{Name: "wifi", Metric: 100} }

func lte() link.Link {
	return link.Link{Name: "lte", Metric: 200, Terms: policy.Terms{Metered: true}, Kind: link.KindCellular}
}

// serveRelay starts a relay that may reach this machine, and returns its address and state file.
func serveRelay(t *testing.T) (address, state string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "server.json")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &relay.Server{State: state, Log: slog.New(slog.DiscardHandler), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := s.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-over })
	return ln.Addr().String(), state
}

// until waits for a condition that is soon met.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain: ", what)
		}
	}
}

// TestPair: an app's relay is paired over a link and used at once, has lanes over metered links too, is available again after a
// restart, and is forgotten. A link is valid once, and errors never repeat it.
func TestPair(t *testing.T) {
	address, server := serveRelay(t)
	invite := func() string {
		i, err := relay.Invite(server, address, relay.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return i.Link()
	}
	state := filepath.Join(t.TempDir(), "relay.json")
	p := newPhone(t, state, wifi(), lte())
	if _, ok := p.Relay(); ok || p.relays(t.Context(), "example.com:443") {
		t.Error("a relay before any is paired")
	}
	invitation := invite()
	if got, err := p.Pair(t.Context(), invitation); err != nil || got != address {
		t.Fatalf("%q, %v", got, err)
	}
	up := func(p *phone) func() bool {
		return func() bool {
			s, ok := p.Relay()
			return ok && len(s.Lanes) == 2 && s.Lanes[0].Up && s.Lanes[1].Up
		}
	}
	until(t, "lanes over both links", up(p))
	if !p.relays(t.Context(), "example.com:443") || p.relays(With(t.Context(), Unmetered), "example.com:443") {
		t.Error("tunnels go by the relay, but for those that may not use metered links")
	}

	s := origintest.New(t, origintest.Object{Size: 8 << 20}, origintest.RateLimit(paced))
	c, name, err := p.raceRelay(t.Context(), s.Addr(0))
	if err != nil || name != "" {
		t.Fatalf("over %q: %v", name, err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, 4<<20); err != nil {
		t.Error(err)
	}
	until(t, "what moves by the relay could use mobile data", func() bool { return p.spread.Load() > 0 })

	for what, test := range map[string]struct {
		link string
		want error
	}{
		"used":      {invitation, relay.ErrRefused},
		"no link":   {"https://example.com/#a.b", relay.ErrNotInvitation},
		"mangled":   {strings.Replace(invite(), "#", "#"+strings.Repeat("A", 43)+"x", 1), relay.ErrNotInvitation},
		"other key": {otherKey(invite()), relay.ErrWrongKey},
	} {
		_, err := p.Pair(t.Context(), test.link)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", what, err, test.want)
		}
		if token := test.link[strings.LastIndexByte(test.link, '.')+1:]; err != nil && len(token) > 8 && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the error tells the token", what)
		}
	}

	until(t, "after a start", up(newPhone(t, state, wifi(), lte())))
	p.pays.Store(false)
	p.LookAgain()
	until(t, "no lane over mobile data that nobody may use", func() bool {
		s, _ := p.Relay()
		return len(s.Lanes) == 1 && s.Lanes[0].Link == "wifi" && s.Lanes[0].Up
	})
	hotspot := wifi()
	hotspot.Terms.Metered = true
	p.source.Set(p.dial.Over(hotspot, lte())...)
	until(t, "no lane over Wi-Fi that has become metered", func() bool {
		s, _ := p.Relay()
		return len(s.Lanes) == 0
	})
	if err := p.Forget(address); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Relay(); ok {
		t.Error("it is still used")
	}
	if _, err := io.Copy(io.Discard, c); err == nil {
		t.Error("a tunnel by a relay that is forgotten ends as if it were complete")
	}
}

// otherKey returns an invitation that names another server's key.
func otherKey(invitation string) string {
	before, rest, _ := strings.Cut(invitation, "#")
	_, token, _ := strings.Cut(rest, ".")
	return before + "#" + strings.Repeat("A", 43) + "." + token
}

// TestUnmetered: traffic that may not use metered links never dials one, and does not make mobile data wanted.
func TestUnmetered(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 4 << 20}, origintest.RateLimit(paced))
	p := newPhone(t, filepath.Join(t.TempDir(), "relay.json"), wifi(), lte())
	free := With(t.Context(), Unmetered)
	fetch := func(ctx context.Context, p *phone, method string) error {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr(0)+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.RoundTrip(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if err := fetch(free, p, method); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // a second one of a program would take another link
		c, name, err := p.DialTunnel(free, s.Addr(0))
		if err != nil || name != "wifi" {
			t.Fatalf("a tunnel over %q: %v", name, err)
		}
		defer c.Close()
	}
	if p.used("lte", "") || p.further.Load() != 0 || p.running.Load() == 0 {
		t.Errorf("mobile data is used: %v, could help %d of %d transfers", p.used("lte", ""), p.further.Load(), p.running.Load())
	}
	if err := fetch(t.Context(), p, http.MethodGet); err != nil || !p.used("lte", s.Addr(0)) || p.further.Load() == 0 {
		t.Errorf("who may does not use it: %v", err)
	}

	alone := newPhone(t, filepath.Join(t.TempDir(), "relay.json"), lte())
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if err := fetch(free, alone, method); !errors.Is(err, engine.ErrNoLink) {
			t.Errorf("%s with mobile data alone: %v", method, err)
		}
	}
	if _, _, err := alone.DialTunnel(free, s.Addr(0)); !errors.Is(err, engine.ErrNoLink) {
		t.Errorf("a tunnel with mobile data alone: %v", err)
	}
	if alone.used("lte", "") {
		t.Error("mobile data alone is used")
	}
}

// TestCostsMidway: Wi-Fi becomes a metered hotspot while requests run that may spend nothing. Requests over one link end; a
// download waits, and resumes over the next link without a cost.
func TestCostsMidway(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 4 << 20}, origintest.RateLimit(paced))
	p := newPhone(t, filepath.Join(t.TempDir(), "relay.json"), wifi())
	var consent Consent
	consent.Give(false)
	request := func(fields ...string) (*http.Response, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(With(t.Context(), func(o *Options) { o.Consent = &consent }), http.MethodGet, "http://"+s.Addr(0)+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			r.Header.Set(f, "trailers")
		}
		return p.RoundTrip(r)
	}
	divided, err := request()
	if err != nil {
		t.Fatal(err)
	}
	defer divided.Body.Close()
	passed, err := request("Te")
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Body.Close()
	for _, resp := range []*http.Response{divided, passed} {
		if _, err := io.ReadFull(resp.Body, make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	hotspot := wifi()
	hotspot.Terms.Metered = true
	p.source.Set(p.dial.Over(hotspot)...)
	if n, err := io.Copy(io.Discard, passed.Body); err == nil || !errors.Is(err, engine.ErrCosts) {
		t.Errorf("over one link: %d bytes more, %v", n, err)
	}
	if _, err := request("Te"); !errors.Is(err, engine.ErrNoLink) {
		t.Errorf("a request over one link: %v", err)
	}
	p.dialed.Clear()
	other := link.Link{Name: "other", Metric: 300}
	p.source.Set(p.dial.Over(hotspot, other)...)
	n, err := io.Copy(io.Discard, divided.Body)
	if err != nil || n != 4<<20-64<<10 {
		t.Errorf("the download: %d bytes more, %v", n, err)
	}
	if p.used("wifi", "") || !p.used("other", "") {
		t.Errorf("the hotspot is used: %v, the other link: %v", p.used("wifi", ""), p.used("other", ""))
	}

	consent.Give(true)
	divided, err = request()
	if err != nil {
		t.Fatal(err)
	}
	defer divided.Body.Close()
	until(t, "the hotspot is used", func() bool { return p.used("wifi", "") })
	consent.Give(false)
	p.LookAgain()
	until(t, "the hotspot is not wanted", func() bool { return p.helped.Load() == 0 })
	p.dialed.Clear()
	if _, err := io.Copy(io.Discard, divided.Body); err != nil || p.used("wifi", "") {
		t.Errorf("the consent ends: %v; the hotspot is used: %v", err, p.used("wifi", ""))
	}
}
