package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"golang.org/x/net/dns/dnsmessage"
)

// attempts records which address was dialed when, in virtual time.
type attempts struct {
	start time.Time
	mu    sync.Mutex
	log   []string
	open  int // fake connections not closed
}

// note returns the number of the attempt, from 0.
func (a *attempts) note(what any) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, fmt.Sprintf("%v %v", time.Since(a.start), what))
	return len(a.log) - 1
}

// fakeConn is a connection that counts itself.
type fakeConn struct {
	net.Conn
	to netip.Addr
	of *attempts
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.to, 443))
}

func (c *fakeConn) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.open--
	return nil
}

// found is the result of a scripted lookup and the time that it takes.
type found struct {
	after time.Duration
	addrs []netip.Addr
	err   error
}

var (
	errRefused = syscall.ECONNREFUSED
	forever    = time.Hour
)

// TestRace dials in virtual time: names arrive as scripted, and an address answers as its entry in hosts says (positive: time of a
// successful handshake; negative: time until it is refused).
func TestRace(t *testing.T) {
	const dual = "10.0.0.1 2001:db8::1"
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name   string
		link   string
		v4, v6 found
		hosts  map[string]time.Duration
		want   string // address that wins; "" = none
		log    []string
		op     string
	}{
		{
			"R147 IPv6 first when both are there", dual,
			found{addrs: ips("192.0.2.1")},
			found{addrs: ips("2001:db8::9")},
			map[string]time.Duration{"2001:db8::9": ms(20)},
			"2001:db8::9",
			[]string{"0s 2001:db8::9"},
			"",
		},
		{
			"R147 the IPv6 answer is waited for 50 ms", dual,
			found{addrs: ips("192.0.2.1")},
			found{after: ms(40), addrs: ips("2001:db8::9")},
			map[string]time.Duration{"2001:db8::9": ms(20)},
			"2001:db8::9",
			[]string{"40ms 2001:db8::9"},
			"",
		},
		{
			"R147 and not longer", dual,
			found{addrs: ips("192.0.2.1")},
			found{after: forever},
			map[string]time.Duration{"192.0.2.1": ms(20)},
			"192.0.2.1",
			[]string{"50ms 192.0.2.1"},
			"",
		},
		{
			"R147 slow A does not hold IPv6 up", dual,
			found{after: forever},
			found{addrs: ips("2001:db8::9")},
			map[string]time.Duration{"2001:db8::9": ms(20)},
			"2001:db8::9",
			[]string{"0s 2001:db8::9"},
			"",
		},
		{
			"R147 no IPv6 address: no wait", dual,
			found{addrs: ips("192.0.2.1")},
			found{},
			map[string]time.Duration{"192.0.2.1": ms(20)},
			"192.0.2.1",
			[]string{"0s 192.0.2.1"},
			"",
		},
		{
			"R147 dead IPv6: IPv4 after 250 ms", dual,
			found{addrs: ips("192.0.2.1")},
			found{addrs: ips("2001:db8::9", "2001:db8::a")},
			map[string]time.Duration{"2001:db8::9": forever, "192.0.2.1": ms(20)},
			"192.0.2.1",
			[]string{"0s 2001:db8::9", "250ms 192.0.2.1"},
			"",
		},
		{
			"R147 refused: the next at once", dual,
			found{addrs: ips("192.0.2.1")},
			found{addrs: ips("2001:db8::9")},
			map[string]time.Duration{"2001:db8::9": -ms(7), "192.0.2.1": ms(20)},
			"192.0.2.1",
			[]string{"0s 2001:db8::9", "7ms 192.0.2.1"},
			"",
		},
		{
			"families alternate, then the rest", dual,
			found{addrs: ips("192.0.2.1")},
			found{addrs: ips("2001:db8::9", "2001:db8::a", "2001:db8::b")},
			map[string]time.Duration{"2001:db8::b": ms(20)},
			"2001:db8::b",
			[]string{"0s 2001:db8::9", "250ms 192.0.2.1", "500ms 2001:db8::a", "750ms 2001:db8::b"},
			"",
		},
		{
			"the first handshake wins, not the first attempt", dual,
			found{addrs: ips("192.0.2.1")},
			found{addrs: ips("2001:db8::9")},
			map[string]time.Duration{"2001:db8::9": ms(300), "192.0.2.1": ms(10)},
			"192.0.2.1",
			[]string{"0s 2001:db8::9", "250ms 192.0.2.1"},
			"",
		},
		{
			"a late answer joins a race whose timer has run out", dual,
			found{addrs: ips("192.0.2.1")},
			found{after: ms(900), addrs: ips("2001:db8::9")},
			map[string]time.Duration{"192.0.2.1": forever, "2001:db8::9": ms(20)},
			"2001:db8::9",
			[]string{"50ms 192.0.2.1", "300ms 192.0.2.1", "900ms 2001:db8::9"},
			"",
		},
		{
			"refused while the other family is still asked for", dual,
			found{addrs: ips("192.0.2.1")},
			found{after: ms(900), addrs: ips("2001:db8::9")},
			map[string]time.Duration{"192.0.2.1": -ms(1), "2001:db8::9": ms(20)},
			"2001:db8::9",
			[]string{"50ms 192.0.2.1", "900ms 2001:db8::9"},
			"",
		},
		{
			"R148 a family that the link lacks is not asked for", "10.0.0.1",
			found{addrs: ips("192.0.2.1")},
			found{after: forever},
			map[string]time.Duration{"192.0.2.1": ms(20)},
			"192.0.2.1",
			[]string{"0s 192.0.2.1"},
			"",
		},
		{
			"all refused", dual,
			found{addrs: ips("192.0.2.1")},
			found{addrs: ips("2001:db8::9")},
			map[string]time.Duration{"2001:db8::9": -ms(1), "192.0.2.1": -ms(1)},
			"",
			[]string{"0s 2001:db8::9", "1ms 192.0.2.1"},
			OpConnect,
		},
		{
			"black holes end with the timeout", dual,
			found{addrs: ips("192.0.2.1")},
			found{},
			nil, "",
			[]string{"0s 192.0.2.1", "250ms 192.0.2.1", "5s end"},
			OpConnect,
		},
		{"no answer from any DNS server", dual, found{after: forever}, found{after: forever}, nil, "", []string{"5s end"}, OpResolve},
		{"no such host", dual, found{}, found{}, nil, "", nil, OpResolve},
		{"lookups fail", dual, found{err: errors.New("servfail")}, found{}, nil, "", nil, OpResolve},
		{
			"a lookup fails, the other family works", dual,
			found{addrs: ips("192.0.2.1")},
			found{err: errors.New("servfail")},
			map[string]time.Duration{"192.0.2.1": ms(20)},
			"192.0.2.1",
			[]string{"0s 192.0.2.1"},
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &attempts{start: time.Now()}
				d := &Dialer{
					lookup: func(ctx context.Context, _ Link, f family, _ string) ([]netip.Addr, error) {
						n := []found{tt.v4, tt.v6}[f]
						select {
						case <-time.After(n.after):
							return slices.Clone(n.addrs), n.err
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					},
					connect: func(ctx context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
						a.note(to.Addr())
						took, ok := tt.hosts[to.Addr().String()]
						if !ok {
							took = forever
						}
						select {
						case <-time.After(max(took, -took)):
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						if took < 0 {
							return nil, errRefused
						}
						a.mu.Lock()
						a.open++
						a.mu.Unlock()
						return &fakeConn{to: to.Addr(), of: a}, nil
					},
				}
				l := lnk("fake0", 1, strings.Fields(tt.link)...)
				c, _, err := d.Dial(t.Context(), l, "tcp", "o.test:443")
				if time.Since(a.start) == DefaultTimeout {
					a.note("end")
				}
				if !slices.Equal(a.log, tt.log) {
					t.Errorf("attempts %q, want %q", a.log, tt.log)
				}
				if tt.want == "" {
					if de, ok := errors.AsType[*DialError](err); !ok || de.Op != tt.op || de.Link != "fake0" {
						t.Errorf("error %v, want op %s", err, tt.op)
					}
				} else if err != nil || c.(*fakeConn).to.String() != tt.want {
					t.Errorf("got %v, %v, want %s", c, err, tt.want)
				}
				synctest.Wait()
				if a.open > 1 || a.open == 1 && tt.want == "" {
					t.Errorf("%d connections left open", a.open)
				}
			})
		})
	}
}

// TestSecondHandshake loses the first packet of a handshake with a host that has one address: the kernel would resend it after a
// second.
func TestSecondHandshake(t *testing.T) {
	const ms = time.Millisecond
	const lost = time.Hour
	slots := NewSlots(2)
	for _, tt := range []struct {
		name    string
		addrs   string
		took    []time.Duration // time of each handshake; negative = refused
		rtt     time.Duration
		metered bool
		once    bool
		open    int // open connections of the host, of two allowed
		log     []string
		wins    int // handshake that wins, -1 = none
	}{
		{"the first one is in time", "192.0.2.1", []time.Duration{249 * ms}, 0, false, false, 0, []string{"0s 192.0.2.1"}, 0},
		{"a packet is lost", "192.0.2.1", []time.Duration{lost, 20 * ms}, 0, false, false, 0, []string{"0s 192.0.2.1", "250ms 192.0.2.1"}, 1},
		{"the answer was on its way", "192.0.2.1", []time.Duration{260 * ms, 20 * ms}, 0, false, false, 0, []string{"0s 192.0.2.1", "250ms 192.0.2.1"}, 0},
		{"the way is long", "192.0.2.1", []time.Duration{lost, 600 * ms}, 600 * ms, false, false, 0, []string{"0s 192.0.2.1", "850ms 192.0.2.1"}, 1},
		{"and nothing is lost", "192.0.2.1", []time.Duration{849 * ms}, 600 * ms, false, false, 0, []string{"0s 192.0.2.1"}, 0},
		{"both are lost", "192.0.2.1", []time.Duration{lost, lost}, 0, false, false, 0, []string{"0s 192.0.2.1", "250ms 192.0.2.1"}, -1},
		{"the first one is refused late", "192.0.2.1", []time.Duration{-300 * ms, 90 * ms}, 0, false, false, 0, []string{"0s 192.0.2.1", "250ms 192.0.2.1"}, 1},
		{"the first one is refused early", "192.0.2.1", []time.Duration{-200 * ms}, 0, false, false, 0, []string{"0s 192.0.2.1"}, -1},
		{"another address takes its place", "192.0.2.1 192.0.2.2", []time.Duration{lost, lost}, 0, false, false, 0, []string{"0s 192.0.2.1", "250ms 192.0.2.2"}, -1},
		{"over a metered link the kernel repeats it", "192.0.2.1", []time.Duration{1020 * ms}, 0, true, false, 0, []string{"0s 192.0.2.1"}, 0},
		{"a probe, which is repeated as a whole", "192.0.2.1", []time.Duration{lost}, 0, false, true, 0, []string{"0s 192.0.2.1"}, -1},
		{"the host has one connection left", "192.0.2.1", []time.Duration{lost, 20 * ms}, 0, false, false, 1, []string{"0s 192.0.2.1", "250ms 192.0.2.1"}, 1},
		{"the host has no connection left", "192.0.2.1", []time.Duration{1020 * ms}, 0, false, false, 2, []string{"0s 192.0.2.1"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for range tt.open {
					s, err := slots.Take("fake0", "o.test:443")
					if err != nil {
						t.Fatal(err)
					}
					defer s.Release()
				}
				type numbered struct {
					*fakeConn
					n int
				}
				a := &attempts{start: time.Now()}
				d := &Dialer{
					RTT: func(Link) time.Duration { return tt.rtt }, Slots: slots,
					lookup: func(_ context.Context, _ Link, f family, _ string) ([]netip.Addr, error) {
						return only(f, ips(strings.Fields(tt.addrs)...)...), nil
					},
					connect: func(ctx context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
						n := a.note(to.Addr())
						if n >= len(tt.took) {
							return nil, errRefused
						}
						select {
						case <-time.After(max(tt.took[n], -tt.took[n])):
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						if tt.took[n] < 0 {
							return nil, errRefused
						}
						a.mu.Lock()
						a.open++
						a.mu.Unlock()
						return numbered{&fakeConn{to: to.Addr(), of: a}, n}, nil
					},
				}
				l := lnk("fake0", 1, "10.0.0.1")
				l.Terms.Metered = tt.metered
				ctx := t.Context()
				if tt.once {
					ctx = Once(ctx, netip.Addr{})
				}
				c, _, err := d.Dial(ctx, l, "tcp", "o.test:443")
				if !slices.Equal(a.log, tt.log) {
					t.Errorf("handshakes %q, want %q", a.log, tt.log)
				}
				switch {
				case tt.wins < 0 && err == nil, tt.wins >= 0 && err != nil:
					t.Errorf("error %v", err)
				case err == nil && c.(numbered).n != tt.wins:
					t.Errorf("handshake %d wins, want %d", c.(numbered).n, tt.wins)
				}
				synctest.Wait()
				if want := min(1, tt.wins+1); a.open != want {
					t.Errorf("%d connections are open, want %d", a.open, want)
				}
				for range 2 - tt.open { // the second one has released its slot
					s, err := slots.Take("fake0", "o.test:443")
					if err != nil {
						t.Error(err)
					}
					defer s.Release()
				}
			})
		})
	}
}

// TestOnce: a dial to a known address looks up no name and starts one handshake, whatever other addresses the name has.
func TestOnce(t *testing.T) {
	for _, addr := range []string{"192.0.2.1", "2001:db8::1"} {
		synctest.Test(t, func(t *testing.T) {
			var dialed, checked []string
			d := &Dialer{
				lookup: func(context.Context, Link, family, string) ([]netip.Addr, error) {
					t.Error("the name is looked up")
					return nil, nil
				},
				connect: func(ctx context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
					dialed = append(dialed, to.String())
					<-ctx.Done()
					return nil, ctx.Err()
				},
				Allow: func(l Link, name string, to netip.AddrPort) (Link, error) {
					checked = append(checked, name+" "+to.String())
					return l, nil
				},
			}
			to := netip.MustParseAddr(addr)
			ctx, cancel := context.WithTimeout(Once(t.Context(), to), time.Second)
			defer cancel()
			if _, _, err := d.Dial(ctx, lnk("fake0", 1, "10.0.0.1", "2001:db8::9"), "tcp", "o.test:443"); err == nil {
				t.Error("no error")
			}
			want := netip.AddrPortFrom(to, 443).String()
			if !slices.Equal(dialed, []string{want}) || !slices.Equal(checked, []string{"o.test " + want}) {
				t.Errorf("dialed %v, checked %v, want %s once", dialed, checked, want)
			}
		})
	}
}

func TestRaceErrors(t *testing.T) {
	l := lnk("fake0", 1, "10.0.0.1")
	bind := &BindError{Link: "fake0", Err: syscall.ENODEV}
	d := &Dialer{
		lookup: func(context.Context, Link, family, string) ([]netip.Addr, error) {
			return ips("192.0.2.1", "192.0.2.2"), nil
		},
	}
	dial := func(ctx context.Context, network, addr string) *DialError {
		c, _, err := d.Dial(ctx, l, network, addr)
		de, ok := errors.AsType[*DialError](err)
		if !ok || c != nil {
			t.Fatalf("got %v, %v", c, err)
		}
		return de
	}
	t.Run("R199 a bind error is told apart from an unreachable origin", func(t *testing.T) {
		d.connect = func(context.Context, Link, netip.AddrPort) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: bind}
		}
		if e := dial(t.Context(), "tcp", "o.test:80"); e.Op != OpBind || !errors.Is(e, syscall.ENODEV) {
			t.Errorf("got %v", e)
		}
		d.connect = func(context.Context, Link, netip.AddrPort) (net.Conn, error) { return nil, errRefused }
		if e := dial(t.Context(), "tcp", "o.test:80"); e.Op != OpConnect || !errors.Is(e, errRefused) {
			t.Errorf("got %v", e)
		}
	})
	t.Run("R149 a bind error of a DNS socket too", func(t *testing.T) {
		lookup := d.lookup
		defer func() { d.lookup = lookup }()
		d.lookup = func(context.Context, Link, family, string) ([]netip.Addr, error) {
			return nil, fmt.Errorf("look up: %w", bind)
		}
		if e := dial(t.Context(), "tcp", "o.test:80"); e.Op != OpBind {
			t.Errorf("got %v", e)
		}
	})
	t.Run("the caller's cancellation", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d.connect = func(ctx context.Context, _ Link, _ netip.AddrPort) (net.Conn, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if e := dial(ctx, "tcp", "o.test:80"); !errors.Is(e, context.Canceled) {
			t.Errorf("got %v", e)
		}
	})
	t.Run("R148 no address of the family", func(t *testing.T) {
		if e := dial(t.Context(), "tcp", "[2001:db8::1]:80"); e.Op != OpConnect || !strings.Contains(e.Error(), "no address of the family") {
			t.Errorf("got %v", e)
		}
		if e := dial(t.Context(), "tcp6", "o.test:80"); e.Op != OpConnect {
			t.Errorf("got %v", e)
		}
	})
	t.Run("nonsense", func(t *testing.T) {
		for _, a := range []string{"o.test", "o.test:http", "o.test:65536", ""} {
			dial(t.Context(), "tcp", a)
		}
		dial(t.Context(), "udp", "o.test:80")
	})
}

func TestAllow(t *testing.T) {
	own := errors.New("own listener")
	l := lnk("fake0", 1, "127.0.0.1", "::1")
	var dialed []netip.Addr
	d := &Dialer{
		lookup: func(_ context.Context, _ Link, f family, host string) ([]netip.Addr, error) {
			if a, ok := literal(host); ok {
				return only(f, a), nil
			}
			return only(f, ips("127.0.0.1", "192.0.2.1")...), nil
		},
		connect: func(_ context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
			dialed = append(dialed, to.Addr())
			return nil, errRefused
		},
		Allow: func(l Link, _ string, to netip.AddrPort) (Link, error) {
			if to.Addr().IsLoopback() && to.Port() == 8080 {
				return l, own
			}
			return l, nil
		},
	}
	t.Run("R15 R183 the resolved address is checked, others are dialed", func(t *testing.T) {
		_, _, err := d.Dial(t.Context(), l, "tcp", "o.test:8080")
		if !slices.Equal(dialed, ips("192.0.2.1")) || !errors.Is(err, own) || !errors.Is(err, errRefused) {
			t.Errorf("dialed %v, error %v", dialed, err)
		}
	})
	t.Run("R15 nothing left", func(t *testing.T) {
		for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"} {
			dialed = nil
			_, _, err := d.Dial(t.Context(), l, "tcp", host+":8080")
			if de, ok := errors.AsType[*DialError](err); !ok || de.Op != OpRefuse || !errors.Is(err, own) || dialed != nil {
				t.Errorf("%s: dialed %v, error %v", host, dialed, err)
			}
		}
	})
}

// TestInfo: Info reports where a connection leads, and whether it goes over the link.
func TestInfo(t *testing.T) {
	d := &Dialer{
		lookup: func(_ context.Context, _ Link, f family, host string) ([]netip.Addr, error) {
			if a, ok := literal(host); ok {
				return only(f, a), nil
			}
			return only(f, ips("192.0.2.1")...), nil
		},
		connect: func(_ context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
			return &fakeConn{to: to.Addr(), of: &attempts{}}, nil
		},
		Allow: func(l Link, _ string, to netip.AddrPort) (Link, error) {
			if to.Addr().IsLoopback() {
				return lnk("lo", 1), nil
			}
			return l, nil
		},
	}
	for addr, want := range map[string]Info{
		"o.test:443":    {Origin: netip.MustParseAddrPort("192.0.2.1:443")},
		"127.0.0.1:443": {Origin: netip.MustParseAddrPort("127.0.0.1:443"), Local: true},
	} {
		if _, info, err := d.Dial(t.Context(), lnk("fake0", 1, "10.0.0.1"), "tcp", addr); err != nil || info != want {
			t.Errorf("%s: %+v, %v, want %+v", addr, info, err, want)
		}
	}
}

// TestDialLoopback uses real sockets, bound to nothing.
func TestDialLoopback(t *testing.T) {
	good, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	port := good.Addr().(*net.TCPAddr).Port
	// Nobody listens at 127.0.0.9.
	dns := ServeDNS(t, anyPort, Always(Said{Addrs: ips("127.0.0.9", "127.0.0.1")}))
	b := &recorder{}
	d := &Dialer{Binder: b, Resolver: &Resolver{Binder: b}, Allow: (&Destinations{Allow: prefixes("127.0.0.0/8")}).Check}
	l := asking(dns)
	c, info, err := d.Dial(t.Context(), l, "tcp", fmt.Sprintf("o.test:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(*net.TCPConn); !ok {
		t.Errorf("connection is a %T", c)
	}
	if got := c.RemoteAddr().String(); got != good.Addr().String() || info.Origin.String() != got || info.RTT <= 0 && !UnderQEMU || !info.Local {
		t.Errorf("connected to %s, %+v", got, info)
	}
	t.Run("R121 R199 every socket is bound, to loopback for loopback", func(t *testing.T) {
		var bound []string
		for _, call := range b.called() {
			if strings.Contains(call, " tcp4 ") {
				bound = append(bound, call)
			}
		}
		want := []string{fmt.Sprintf("lo tcp4 127.0.0.9:%d", port), fmt.Sprintf("lo tcp4 127.0.0.1:%d", port)}
		if !slices.Equal(bound, want) {
			t.Errorf("bound %v", bound)
		}
	})
	t.Run("refused everywhere", func(t *testing.T) {
		_, _, err := d.Dial(t.Context(), l, "tcp", fmt.Sprintf("127.0.0.9:%d", port))
		if de, ok := errors.AsType[*DialError](err); !ok || de.Op != OpConnect || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no such host", func(t *testing.T) {
		l := asking(ServeDNS(t, anyPort, Always(Said{RCode: dnsmessage.RCodeNameError})))
		_, _, err := d.Dial(t.Context(), l, "tcp", "o.test:80")
		de, ok := errors.AsType[*DialError](err)
		if dnsErr, isDNS := errors.AsType[*net.DNSError](err); !ok || de.Op != OpResolve || !isDNS || !dnsErr.IsNotFound {
			t.Errorf("error %v", err)
		}
	})
}
