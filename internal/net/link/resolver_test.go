package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"golang.org/x/net/dns/dnsmessage"
)

// recorder is a Binder that binds to nothing and records its requests.
type recorder struct {
	err error // error of every bind

	mu    sync.Mutex
	calls []string // "link network address"
}

func (r *recorder) Control(l Link) func(network, address string, c syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, fmt.Sprintf("%s %s %s", l.Name, network, address))
		if r.err != nil {
			return &BindError{Link: l.Name, Err: r.err}
		}
		return nil
	}
}

func (r *recorder) called() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// asking returns a link on loopback that asks these servers.
func asking(servers ...*DNSServer) Link {
	l := lnk("fake0", 7, "127.0.0.1", "::1")
	for _, s := range servers {
		l.DNS = append(l.DNS, s.Addr)
	}
	return l
}

const anyPort = "127.0.0.1:0"

var (
	one  = Said{Addrs: ips("192.0.2.1", "2001:db8::1")}
	two  = Said{Addrs: ips("192.0.2.2")}
	fail = Said{RCode: dnsmessage.RCodeServerFailure}
)

func look(t *testing.T, r *Resolver, l Link, network, host string) []netip.Addr {
	t.Helper()
	addrs, err := r.Lookup(t.Context(), l, network, host)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

func TestLookup(t *testing.T) {
	t.Run("R149 an absolute name, over a bound socket", func(t *testing.T) {
		s, b := ServeDNS(t, anyPort, Always(one)), &recorder{}
		got := look(t, &Resolver{Binder: b}, asking(s), "ip", "Origin")
		if !slices.Equal(got, ips("2001:db8::1", "192.0.2.1")) {
			t.Errorf("got %v", got)
		}
		for _, a := range s.Asks() {
			if a.Name != "origin." {
				t.Errorf("asked for %s", a.Name)
			}
		}
		if n := len(s.Asks()); n != 2 {
			t.Errorf("%d questions for two families", n)
		}
		for _, c := range b.called() {
			if c != "fake0 udp4 "+s.Addr.String() {
				t.Errorf("bound %s", c)
			}
		}
		if len(b.called()) != 2 {
			t.Errorf("%d sockets bound for 2 questions", len(b.called()))
		}
	})
	t.Run("IPv6 server", func(t *testing.T) {
		s, b := ServeDNS(t, "[::1]:0", Always(one)), &recorder{}
		if got := look(t, &Resolver{Binder: b}, asking(s), "ip4", "o.test"); !slices.Equal(got, ips("192.0.2.1")) {
			t.Errorf("got %v", got)
		}
		if c := b.called(); len(c) != 1 || !strings.HasPrefix(c[0], "fake0 udp6 ") {
			t.Errorf("bound %v", c)
		}
	})
	t.Run("one family is asked for alone", func(t *testing.T) {
		s := ServeDNS(t, anyPort, Always(one))
		look(t, &Resolver{Binder: &recorder{}}, asking(s), "ip4", "o.test")
		if got := s.Asks(); !slices.Equal(got, []Asked{{Name: "o.test.", Type: dnsmessage.TypeA, EDNS: true}}) {
			t.Errorf("asked %v", got)
		}
	})
	t.Run("literals and localhost ask nobody", func(t *testing.T) {
		s := ServeDNS(t, anyPort, Always(one))
		r, l := &Resolver{Binder: &recorder{}}, asking(s)
		for host, want := range map[string][]netip.Addr{
			"192.0.2.9": ips("192.0.2.9"), "[2001:db8::9]": ips("2001:db8::9"), "::ffff:192.0.2.9": ips("192.0.2.9"),
			"localhost": ips("::1", "127.0.0.1"), "a.LOCALHOST.": ips("::1", "127.0.0.1"),
		} {
			if got := look(t, r, l, "ip", host); !slices.Equal(got, want) {
				t.Errorf("%s is %v", host, got)
			}
		}
		if len(s.Asks()) > 0 {
			t.Errorf("asked %v", s.Asks())
		}
	})
	t.Run("first answer wins beside a dead server, and is remembered", func(t *testing.T) {
		dead, live := ServeDNS(t, anyPort, Always(Said{Drop: true})), ServeDNS(t, anyPort, Always(one))
		r, l := &Resolver{Binder: &recorder{}}, asking(dead, live)
		look(t, r, l, "ip4", "a.test")
		before := len(dead.Asks())
		if before > 1 {
			t.Errorf("dead server asked %d times", before)
		}
		for i := range 3 {
			look(t, r, l, "ip4", fmt.Sprintf("%d.test", i))
		}
		if r.memory(l).server() != live.Addr {
			t.Errorf("remembers %v", r.memory(l).server())
		}
		if n := len(live.Asks()); n != 4 {
			t.Errorf("live server asked %d times", n)
		}
	})
	t.Run("a remembered server that dies is replaced", func(t *testing.T) {
		dying, other := ServeDNS(t, anyPort, func(a Asked) Said {
			if a.Name == "a.test." {
				return one
			}
			return Said{Drop: true}
		}), ServeDNS(t, anyPort, func(a Asked) Said {
			if a.Name == "a.test." {
				return Said{Drop: true}
			}
			return two
		})
		r, l := &Resolver{Binder: &recorder{}}, asking(dying, other)
		look(t, r, l, "ip4", "a.test")
		if got := look(t, r, l, "ip4", "b.test"); !slices.Equal(got, ips("192.0.2.2")) {
			t.Errorf("got %v", got)
		}
		if r.memory(l).server() != other.Addr {
			t.Errorf("remembers %v", r.memory(l).server())
		}
	})
	t.Run("SERVFAIL and REFUSED wait for the others", func(t *testing.T) {
		failed := make(chan struct{}, 100) // more than net.Resolver asks again
		failing := func(say Said) func(Asked) Said {
			return func(Asked) Said { failed <- struct{}{}; return say }
		}
		bad := ServeDNS(t, anyPort, failing(fail))
		worse := ServeDNS(t, anyPort, failing(Said{RCode: dnsmessage.RCodeRefused}))
		slow := ServeDNS(t, anyPort, func(Asked) Said {
			<-failed
			<-failed
			return two
		})
		if got := look(t, &Resolver{Binder: &recorder{}}, asking(bad, worse, slow), "ip4", "o.test"); !slices.Equal(got, ips("192.0.2.2")) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("only failures", func(t *testing.T) {
		bad := ServeDNS(t, anyPort, Always(fail))
		_, err := (&Resolver{Binder: &recorder{}}).Lookup(t.Context(), asking(bad), "ip4", "o.test")
		d, ok := errors.AsType[*net.DNSError](err)
		if !ok || d.IsNotFound || !strings.Contains(err.Error(), "over fake0") || !strings.Contains(err.Error(), bad.Addr.String()) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("NXDOMAIN is an answer and not kept", func(t *testing.T) {
		nx, dead := ServeDNS(t, anyPort, Always(Said{RCode: dnsmessage.RCodeNameError})), ServeDNS(t, anyPort, Always(Said{Drop: true}))
		r, l := &Resolver{Binder: &recorder{}}, asking(dead, nx)
		for range 2 {
			_, err := r.Lookup(t.Context(), l, "ip", "o.test")
			if d, ok := errors.AsType[*net.DNSError](err); !ok || !d.IsNotFound || d.Name != "o.test" {
				t.Errorf("error %v", err)
			}
		}
		if n := len(nx.Asks()); n != 4 {
			t.Errorf("%d questions, want 2 families twice", n)
		}
	})
	t.Run("truncated over UDP, whole over TCP", func(t *testing.T) {
		b := &recorder{}
		s := ServeDNS(t, anyPort, func(a Asked) Said {
			if a.TCP {
				return two
			}
			return Said{Truncated: true}
		})
		if got := look(t, &Resolver{Binder: b}, asking(s), "ip4", "o.test"); !slices.Equal(got, ips("192.0.2.2")) {
			t.Errorf("got %v", got)
		}
		want := []string{"fake0 udp4 " + s.Addr.String(), "fake0 tcp4 " + s.Addr.String()}
		if got := b.called(); !slices.Equal(got, want) {
			t.Errorf("bound %v", got)
		}
	})
	t.Run("R149 a server without EDNS is asked again without it, and then so from the start", func(t *testing.T) {
		for _, rcode := range []dnsmessage.RCode{dnsmessage.RCodeFormatError, dnsmessage.RCodeNotImplemented} {
			s := ServeDNS(t, anyPort, func(a Asked) Said {
				switch {
				case a.EDNS:
					return Said{RCode: rcode}
				case a.Name == "long.test." && !a.TCP:
					return Said{Truncated: true}
				}
				return two
			})
			r := &Resolver{Binder: &recorder{}}
			for _, name := range []string{"a.test", "b.test", "long.test"} {
				if got := look(t, r, asking(s), "ip4", name); !slices.Equal(got, ips("192.0.2.2")) {
					t.Errorf("%v: %s is %v", rcode, name, got)
				}
			}
			want := []Asked{
				{Name: "a.test.", Type: dnsmessage.TypeA, TCP: false, EDNS: true},
				{Name: "a.test.", Type: dnsmessage.TypeA, TCP: false, EDNS: false},
				{Name: "b.test.", Type: dnsmessage.TypeA, TCP: false, EDNS: false},
				{Name: "long.test.", Type: dnsmessage.TypeA, TCP: false, EDNS: false},
				{Name: "long.test.", Type: dnsmessage.TypeA, TCP: true, EDNS: false},
			}
			if got := slices.Compact(s.Asks()); !slices.Equal(got, want) {
				t.Errorf("%v: asked %v", rcode, got)
			}
		}
	})
	t.Run("a server that refuses every question is asked twice", func(t *testing.T) {
		s := ServeDNS(t, anyPort, Always(Said{RCode: dnsmessage.RCodeFormatError}))
		if _, err := (&Resolver{Binder: &recorder{}}).Lookup(t.Context(), asking(s), "ip4", "o.test"); err == nil {
			t.Error("no error")
		}
	})
	t.Run("R199 a bind that fails is told as such and sends nothing", func(t *testing.T) {
		s := ServeDNS(t, anyPort, Always(one))
		_, err := (&Resolver{Binder: &recorder{err: syscall.EPERM}}).Lookup(t.Context(), asking(s), "ip", "o.test")
		if b, ok := errors.AsType[*BindError](err); !ok || b.Link != "fake0" || !errors.Is(err, syscall.EPERM) {
			t.Errorf("error %v", err)
		}
		if len(s.Asks()) > 0 {
			t.Errorf("asked %v", s.Asks())
		}
	})
	t.Run("R198 no server known", func(t *testing.T) {
		r := &Resolver{Binder: &recorder{}, files: files(t, "nameserver 127.0.0.53")}
		if _, err := r.Lookup(t.Context(), asking(), "ip", "o.test"); !errors.Is(err, ErrNoServer) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a caller that goes away does not wait", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := ServeDNS(t, anyPort, func(Asked) Said {
			cancel()
			return Said{Drop: true}
		})
		if _, err := (&Resolver{Binder: &recorder{}}).Lookup(ctx, asking(s), "ip4", "o.test"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLookupRemembers(t *testing.T) {
	s := ServeDNS(t, anyPort, Always(two)) // IPv4 only
	r, l := &Resolver{Binder: &recorder{}}, asking(s)
	for range 3 {
		look(t, r, l, "ip", "o.test")
		look(t, r, l, "ip4", "O.test")
	}
	if n := len(s.Asks()); n != 2 {
		t.Errorf("%d questions, want one for each family", n)
	}
	t.Run("not from one link to another", func(t *testing.T) {
		other := l
		other.Name = "fake1"
		look(t, r, other, "ip4", "o.test")
		if n := len(s.Asks()); n != 3 {
			t.Errorf("%d questions", n)
		}
	})
	t.Run("not beyond a change of address", func(t *testing.T) {
		moved := l
		moved.Addrs = ips("127.0.0.9")
		look(t, r, moved, "ip4", "o.test")
		if n := len(s.Asks()); n != 4 {
			t.Errorf("%d questions", n)
		}
	})
}

// TestPlainForget: a server gets another chance to understand EDNS.
func TestPlainForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &Resolver{}, netip.MustParseAddrPort("192.0.2.53:53")
		r.setPlain(s)
		if time.Sleep(plainFor - 1); !r.isPlain(s) {
			t.Error("forgotten too early")
		}
		if time.Sleep(time.Nanosecond); r.isPlain(s) {
			t.Error("not forgotten")
		}
	})
}

// TestSearchAtOnce: the answer about IPv6 addresses of a host that has none does not take longer because of search domains. The server
// answers the question about them only after the other one.
func TestSearchAtOnce(t *testing.T) {
	var asksBoth atomic.Bool
	s := ServeDNS(t, anyPort, func(a Asked) Said {
		switch {
		case a.Type == dnsmessage.TypeA:
			asksBoth.Store(true)
			return Said{Addrs: ips("192.0.2.1")}
		case !asksBoth.Load():
			return Said{Drop: true}
		}
		return Said{}
	})
	t.Run("R149", func(t *testing.T) {
		r := &Resolver{Binder: &recorder{}, files: files(t, "nameserver 192.0.2.1", "search corp.test")}
		if got, err := r.Lookup(t.Context(), asking(s), "ip6", "www.example.com"); len(got) > 0 || !asksBoth.Load() {
			t.Errorf("%v, %v after %v", got, err, s.Asks())
		}
	})
}

// TestSearch: names without a final dot are completed as resolv.conf(5) says.
func TestSearch(t *testing.T) {
	here := map[string][]netip.Addr{
		"mirror.corp.test.": ips("192.0.2.1"), "six.corp.test.": ips("2001:db8::1"), "six.lab.test.": ips("192.0.2.9"),
		"only.lab.test.": ips("192.0.2.2"), "plain.": ips("192.0.2.3"), "a.b.": ips("192.0.2.4"), "a.b.corp.test.": ips("192.0.2.5"),
		"a.b.c.": ips("192.0.2.6"),
	}
	s := ServeDNS(t, anyPort, func(a Asked) Said {
		if addrs := here[a.Name]; addrs != nil {
			return Said{Addrs: addrs}
		}
		return Said{RCode: dnsmessage.RCodeNameError}
	})
	for _, tt := range []struct {
		conf, name, want string
		asked            []string // IPv4 only
	}{
		{"search corp.test lab.test", "mirror", "192.0.2.1", []string{"mirror.corp.test."}},
		{"search corp.test lab.test", "MIRROR", "192.0.2.1", []string{"mirror.corp.test."}},
		{"search corp.test lab.test", "mirror.", "", []string{"mirror."}},
		{"search corp.test lab.test", "only", "192.0.2.2", []string{"only.corp.test.", "only.lab.test."}},
		{"search corp.test lab.test", "six", "", []string{"six.corp.test."}}, // another host has an IPv4 address
		{"search corp.test lab.test", "plain", "192.0.2.3", []string{"plain.corp.test.", "plain.lab.test.", "plain."}},
		{"search corp.test", "a.b", "192.0.2.4", []string{"a.b."}},
		{"search corp.test\noptions edns0 ndots:2", "a.b", "192.0.2.5", []string{"a.b.corp.test."}},
		{"search corp.test\noptions ndots:2", "a.b.c", "192.0.2.6", []string{"a.b.c."}},
		{"search corp.test\nsearch .", "mirror", "", []string{"mirror."}},
		{"search x.test\ndomain lab.test.", "only", "192.0.2.2", []string{"only.lab.test."}},
		{"search corp.test", "x." + strings.Repeat("long.", 49), "", []string{"x." + strings.Repeat("long.", 49)}},
	} {
		t.Run("R149 "+tt.name+" in "+tt.conf, func(t *testing.T) {
			before := len(s.Asks())
			r := &Resolver{Binder: &recorder{}, files: files(t, "nameserver 192.0.2.1\nsearch elsewhere.test", tt.conf)}
			got, err := r.Lookup(t.Context(), asking(s), "ip4", tt.name)
			if fmt.Sprint(got) != "["+tt.want+"]" || (err == nil) != (tt.want != "") {
				t.Errorf("%v, %v", got, err)
			}
			var names []string
			for _, a := range s.Asks()[before:] {
				if a.Type == dnsmessage.TypeA {
					names = append(names, a.Name)
				}
			}
			if !slices.Equal(slices.Compact(names), tt.asked) { // a busy machine asks again after a second
				t.Errorf("asked for %q", names)
			}
		})
	}
	t.Run("R149 the domain of the host, where no other is named", func(t *testing.T) {
		if domains, ndots := parseSearch("nameserver 192.0.2.1"); domains != nil || ndots != 1 {
			t.Error(domains, ndots)
		}
	})
}

func TestMemory(t *testing.T) {
	q := question{"o.test", v4}
	addrs := ips("192.0.2.1")
	t.Run("an answer is kept for 30 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, asks := newMemory(Link{}), 0
			ask := func(context.Context) ([]netip.Addr, error) { asks++; return addrs, nil }
			m.lookup(t.Context(), q, ask)
			time.Sleep(keepAnswer - 1)
			m.lookup(t.Context(), q, ask)
			if asks != 1 {
				t.Errorf("asked %d times", asks)
			}
			time.Sleep(time.Nanosecond)
			m.lookup(t.Context(), q, ask)
			if asks != 2 {
				t.Errorf("asked %d times", asks)
			}
		})
	})
	t.Run("errors and empty answers are not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, asks := newMemory(Link{}), 0
			for _, err := range []error{nil, nil, errors.New("x"), errors.New("x")} {
				m.lookup(t.Context(), q, func(context.Context) ([]netip.Addr, error) { asks++; return nil, err })
			}
			if asks != 4 {
				t.Errorf("asked %d times", asks)
			}
		})
	})
	t.Run("equal questions are asked once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, asks, answer := newMemory(Link{}), 0, make(chan struct{})
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					got, err := m.lookup(t.Context(), q, func(context.Context) ([]netip.Addr, error) { asks++; <-answer; return addrs, nil })
					if err != nil || !slices.Equal(got, addrs) {
						t.Errorf("got %v, %v", got, err)
					}
				})
			}
			synctest.Wait()
			close(answer)
			wg.Wait()
			if asks != 1 {
				t.Errorf("asked %d times", asks)
			}
		})
	})
	t.Run("one caller leaves, the other gets the answer; the last one ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, ended := newMemory(Link{}), false
			ask := func(ctx context.Context) ([]netip.Addr, error) { <-ctx.Done(); ended = true; return nil, ctx.Err() }
			first, leave := context.WithCancel(t.Context())
			second, leave2 := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { m.lookup(first, q, ask) })
			synctest.Wait()
			wg.Go(func() { m.lookup(second, q, ask) })
			synctest.Wait()
			leave()
			synctest.Wait()
			if ended {
				t.Error("ended with the first caller")
			}
			leave2()
			wg.Wait()
			if !ended || len(m.flights) > 0 {
				t.Errorf("ended %v, %d flights", ended, len(m.flights))
			}
		})
	})
	t.Run("bounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(Link{})
			for i := range maxNames + 10 {
				m.put(question{fmt.Sprint(i), v4}, addrs, time.Now())
				time.Sleep(time.Millisecond)
			}
			if _, ok := m.names["9"]; ok || len(m.names) != maxNames || m.names["10"] == nil {
				t.Errorf("%d names", len(m.names))
			}
		})
	})
}

func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a4, a6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
		asked := map[string]int{}
		r := &Resolver{Names: func(_ context.Context, l Link, name string) ([]netip.Addr, error) {
			asked[name+" over "+l.Name]++
			time.Sleep(time.Second)
			switch name {
			case "dual.test":
				return []netip.Addr{a4, a6}, nil
			case "four.test":
				return []netip.Addr{a4}, nil
			case "gone.test":
				return nil, nil
			}
			return nil, errors.New("it rains")
		}}
		look := func(network, name string) string {
			got, err := r.Lookup(t.Context(), Link{Name: "a"}, network, name)
			return fmt.Sprint(got, err)
		}
		for range 2 {
			for _, tt := range [][3]string{
				{"ip", "dual.test", "[2001:db8::1 192.0.2.1] <nil>"},
				{"ip4", "DUAL.test.", "[192.0.2.1] <nil>"},
				{"ip6", "dual.test", "[2001:db8::1] <nil>"},
				{"ip", "four.test", "[192.0.2.1] <nil>"},
				{"ip6", "four.test", "[] lookup four.test: no such host"},
				{"ip", "gone.test", "[] lookup gone.test: no such host"},
				{"ip", "bad.test", "[] it rains"},
			} {
				if got := look(tt[0], tt[1]); got != tt[2] {
					t.Errorf("%s of %s: %s; want %s", tt[0], tt[1], got, tt[2])
				}
			}
		}
		want := map[string]int{"dual.test over a": 1, "four.test over a": 1, "gone.test over a": 2, "bad.test over a": 2}
		if !maps.Equal(asked, want) {
			t.Errorf("asked %v; want %v: one question for both families, and no answer kept that is none", asked, want)
		}
	})
}

func TestQueryIsRepeated(t *testing.T) {
	server, err := net.ListenPacket("udp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	q := newQuery(t.Context(), c.(*net.UDPConn))
	defer q.Close()
	q.wait = time.Millisecond
	q.SetDeadline(time.Now().Add(time.Minute))
	q.Write([]byte("question"))
	go func() { // loses the first two datagrams
		b := make([]byte, 100)
		for range 2 {
			server.ReadFrom(b)
		}
		n, from, _ := server.ReadFrom(b)
		server.WriteTo(b[:n], from)
	}()
	b := make([]byte, 100)
	if n, err := q.Read(b); err != nil || string(b[:n]) != "question" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	q.SetDeadline(time.Now())
	if _, err := q.Read(b); !isTimeout(err) {
		t.Errorf("past the deadline: %v", err)
	}
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// TestProbe asks whether a link's DNS servers answer, with names that no server or memory has seen.
func TestProbe(t *testing.T) {
	elsewhere := func(Link, netip.Addr) (Link, bool, error) { return lnk("vpn0", 9, "127.0.0.1"), false, nil }
	for _, tt := range []struct {
		name           string
		say            Said
		over           func(Link, netip.Addr) (Link, bool, error)
		answers, known bool
		asked          int // times, of two
	}{
		{"no such name", Said{RCode: dnsmessage.RCodeNameError}, nil, true, true, 2},
		{"an address", one, nil, true, true, 2},
		{"a failure", fail, nil, false, true, 2},
		{"over another interface", one, elsewhere, false, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := ServeDNS(t, anyPort, Always(tt.say))
			r := &Resolver{Binder: &recorder{}, Over: tt.over}
			for range 2 {
				err := r.Probe(t.Context(), asking(s))
				if answers, known := err == nil, !errors.Is(err, ErrNothingToProbe); answers != tt.answers || known != tt.known {
					t.Error(err)
				}
			}
			names := map[string]bool{}
			for _, a := range s.Asks() {
				names[a.Name] = true
			}
			if len(names) != tt.asked {
				t.Errorf("asked for %v", names)
			}
		})
	}
	t.Run("no server", func(t *testing.T) {
		r := &Resolver{Binder: &recorder{}, files: []string{t.TempDir() + "/resolv.conf"}}
		if err := r.Probe(t.Context(), asking()); !errors.Is(err, ErrNothingToProbe) {
			t.Errorf("nobody can have answered: %v", err)
		}
	})
	t.Run("the host's names", func(t *testing.T) {
		var lost error
		r := &Resolver{Names: func(context.Context, Link, string) ([]netip.Addr, error) { return nil, lost }}
		if err := r.Probe(t.Context(), asking()); err != nil {
			t.Errorf("no such name is an answer: %v", err)
		}
		lost = errors.New("no network")
		if err := r.Probe(t.Context(), asking()); !errors.Is(err, lost) {
			t.Errorf("an error is not an answer: %v", err)
		}
	})
}
