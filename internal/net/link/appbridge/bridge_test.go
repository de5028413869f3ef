package appbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/allowance"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/appbridge/appbridgetest"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// limit bounds every wait.
const limit = 10 * time.Second

// dial connects to an app.
func dial(t *testing.T, a *appbridgetest.App) *Bridge {
	t.Helper()
	a.Listen(t, filepath.Join(t.TempDir(), "s"))
	h, err := Dial(t.Context(), a.Path, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// next returns the next value of a channel within the limit.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(limit):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

func TestGreeting(t *testing.T) {
	for name, tt := range map[string]struct{ greet, want string }{
		"another version": {`{"type":"hello","version":2}`, "version 2"},
		"no hello":        {`{"type":"links"}`, "is not a hello"},
		"no JSON":         {"hello", "is not a hello"},
		"endless":         {strings.Repeat("x", maxLine+1), "no hello from the app"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &appbridgetest.App{Greet: tt.greet}
			a.Listen(t, filepath.Join(t.TempDir(), "s"))
			_, err := Dial(t.Context(), a.Path, slog.Default())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), a.Path) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "s"), slog.Default()); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := Dial(ctx, l.Addr().String(), slog.Default()); err == nil {
			t.Error("no error")
		}
	})
}

const two = `{"type":"links","links":[
	{"name":"wlan0","handle":101,"kind":"wifi","addrs":["192.168.1.5/24","fe80::1/64","2001:db8::5/64"],"dns":["192.168.1.1"],"validated":true,"mtu":1500},
	{"name":"rmnet0","handle":18446744073709551615,"kind":"cellular","addrs":["2001:db8:1::2/64"],"nat64":"64:ff9b::/96","metered":true,"validated":true},
	{"name":"wlan1","handle":103,"kind":"wifi","addrs":["10.1.0.2/24"],"validated":false}]}`

func oneLine(s string) string { return strings.ReplaceAll(s, "\n\t", "") }

// TestLinks: the last message of the app counts.
func TestLinks(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	links, err := h.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first := next(t, links); len(first) != 0 {
		t.Errorf("links before any were told: %v", first)
	}
	a.Say("%s", oneLine(two))
	got := next(t, links)
	want := []link.Link{
		{
			Name: "wlan0", Handle: 101, Kind: "wifi", Addrs: []netip.Addr{netip.MustParseAddr("192.168.1.5"), netip.MustParseAddr("2001:db8::5")},
			Prefixes: []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("2001:db8::/64")},
			DNS:      []netip.AddrPort{netip.MustParseAddrPort("192.168.1.1:53")}, Network: "wifi wlan0 192.168.1.0/24 192.168.1.1",
		},
		{
			Name: "rmnet0", Network: "cellular rmnet0", Handle: 1<<64 - 1, Kind: "cellular", Terms: policy.Terms{Metered: true}, Metric: 1, Addrs: []netip.Addr{netip.MustParseAddr("2001:db8:1::2")},
			Prefixes: []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/64")}, NAT64: netip.MustParsePrefix("64:ff9b::/96"),
		},
	}
	if len(got) != 2 || !got[0].Equal(want[0]) || !got[1].Equal(want[1]) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Reconnected: another network under the same name.
	a.Say(`{"type":"links","links":[{"name":"wlan0","handle":102,"kind":"wifi","addrs":["192.168.1.5/24"],"validated":true}]}`)
	if c := discover.Diff(got, next(t, links)); len(c.Removed) != 2 || len(c.Added) != 1 {
		t.Errorf("a new network is %+v", c)
	}
	a.Say(`{"type":"something of later","x":1}`)
	a.Say(`{"type":"stop"}`)
	next(t, h.Gone())
	if last := next(t, links); len(last) != 0 {
		t.Errorf("links without an app: %v", last)
	}
}

// TestUnusable: an app that describes one link badly keeps the others.
// TestNetwork: a link is named after its network, which a phone's modem does not lose with its interface.
func TestNetwork(t *testing.T) {
	name := func(n network) string {
		l, err := n.link(0)
		if err != nil || l.Network == "" {
			t.Errorf("%+v, %v", l, err)
		}
		return l.Network
	}
	dns := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	lte := network{Name: "rmnet_data0", Handle: 1, Kind: link.KindCellular, Addrs: []string{"10.1.2.3/30"}, DNS: dns}
	again := network{Name: "rmnet_data3", Handle: 7, Kind: link.KindCellular, Addrs: []string{"10.9.9.9/29"}, DNS: dns}
	wifi := network{Name: "wlan0", Handle: 2, Kind: link.KindWiFi, Addrs: []string{"192.168.1.7/24"}, DNS: dns}
	elsewhere := wifi
	elsewhere.Addrs = []string{"192.168.2.7/24"}
	if name(lte) != name(again) || name(lte) == name(wifi) || name(wifi) == name(elsewhere) {
		t.Errorf("%q, %q, %q, %q", name(lte), name(again), name(wifi), name(elsewhere))
	}
}

func TestUnusable(t *testing.T) {
	good := network{Name: "wlan0", Addrs: []string{"10.0.0.2/24"}, Validated: true}
	many := network{Name: "many", Validated: true}
	for range maxAddrs + 1 {
		many.Addrs = append(many.Addrs, "10.0.0.2/24")
	}
	for name, bad := range map[string]network{
		"no name":      {Addrs: good.Addrs, Validated: true},
		"long name":    {Name: "0123456789abcdef", Addrs: good.Addrs, Validated: true},
		"path":         {Name: "../x", Addrs: good.Addrs, Validated: true},
		"space":        {Name: "a b", Addrs: good.Addrs, Validated: true},
		"loopback":     {Name: "lo", Addrs: good.Addrs, Validated: true},
		"twice":        good,
		"no prefix":    {Name: "x", Addrs: []string{"10.0.0.2"}, Validated: true},
		"no NAT64":     {Name: "x", Addrs: good.Addrs, Validated: true, NAT64: "64:ff9b::/95"},
		"many":         many,
		"no address":   {Name: "x", Validated: true},
		"link-local":   {Name: "x", Addrs: []string{"fe80::1/64", "169.254.1.1/16", "127.0.0.1/8"}, Validated: true},
		"a login page": {Name: "x", Addrs: good.Addrs},
	} {
		links, err := usable([]network{good, bad})
		if len(links) != 1 || links[0].Name != "wlan0" {
			t.Errorf("%s: %v", name, links)
		}
		wrong := name != "no address" && name != "link-local" && name != "a login page"
		if (err != nil) != wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimits: the limits of accounts are known when their links are, and change without them.
func TestLimits(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	links, err := h.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next(t, links)
	if len(h.Limits()) != 0 || h.Cellular() != "" {
		t.Errorf("before any was told: %v", h.Limits())
	}
	const one = `"links":[{"name":"rmnet0","handle":1,"addrs":["10.0.0.2/24"],"validated":true,"account":"cellular-1"}]`
	a.Say(`{"type":"links",%s,"accounts":[{"name":"cellular-1","monthly_bytes":9,"daily_bytes":3,"first_day":15},{"name":"metered"}],"cellular":"cellular-1"}`, one)
	got := next(t, links)
	want := map[string]allowance.Limit{"cellular-1": {Month: 9, Day: 3, First: 15}}
	if len(got) != 1 || got[0].Terms.Account != "cellular-1" || !maps.Equal(h.Limits(), want) || h.Cellular() != "cellular-1" {
		t.Errorf("%v with the limits %v, and %q", got, h.Limits(), h.Cellular())
	}
	next(t, h.Limited())
	a.Say(`{"type":"links",%s}`, one)
	next(t, h.Limited())
	if len(h.Limits()) != 0 {
		t.Errorf("limits that are gone: %v", h.Limits())
	}
}

// TestNonsense: an app that sends malformed messages counts as gone.
func TestNonsense(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON": "{", "no type": "{}", "an array": "[]", "wrong type": `{"type":"links","links":"wlan0"}`,
		"long": `{"type":"` + strings.Repeat("x", maxLine) + `"}`, "many": `{"type":"links","links":[` + strings.Repeat("{},", maxLinks) + "{}]}",
		"a limit below 0": `{"type":"links","accounts":[{"name":"cellular","monthly_bytes":-1}]}`,
		"no such day":     `{"type":"links","accounts":[{"name":"cellular","monthly_bytes":1,"first_day":32}]}`,
		"no account":      `{"type":"links","accounts":[{"daily_bytes":1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			a := &appbridgetest.App{}
			h := dial(t, a)
			a.Say("%s", line)
			next(t, h.Gone())
		})
	}
}

// TestBind connects with sockets that the app has bound or refused.
func TestBind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := &appbridgetest.App{Bind: func(handle uint64, fd int) unix.Errno {
		if handle == 13 {
			return unix.EPERM
		}
		if handle == 14 {
			return unix.ENONET
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, 3); err != nil { // like a binding: it is the same socket
			return unix.EINVAL
		}
		return 0
	}}
	h := dial(t, a)
	open := func(handle uint64) error {
		d := net.Dialer{Control: h.Control(link.Link{Name: "wlan0", Handle: handle})}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		var priority int
		if e := raw.Control(func(fd uintptr) { priority, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY) }); e != nil || err != nil || priority != 3 {
			return fmt.Errorf("the app had another socket: %d, %w, %w", priority, e, err)
		}
		return nil
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := open(uint64(100 + i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var bind *link.BindError
	if err := open(13); !errors.As(err, &bind) || bind.Link != "wlan0" || !strings.Contains(err.Error(), "VPN") || strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("refused: %v", err)
	}
	// A new download tries again: Wi-Fi may drop at any moment.
	if err := open(14); errors.As(err, &bind) || !errors.Is(err, unix.ENETUNREACH) || !strings.Contains(err.Error(), "wlan0: the network is gone") {
		t.Errorf("without the network: %v", err)
	}
	if err := open(7); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	if n := len(a.Bound()); n != 23 {
		t.Errorf("%d binds", n)
	}
	a.HangUp()
	next(t, h.Gone())
	if err := open(8); !errors.Is(err, ErrGone) {
		t.Errorf("without an app: %v", err)
	}
}

// TestLookup resolves names.
func TestLookup(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	ask := func(name string) <-chan string {
		done := make(chan string, 1)
		go func() {
			addrs, err := h.Lookup(t.Context(), link.Link{Name: "wlan0", Handle: 5}, name)
			done <- fmt.Sprint(addrs, err)
		}()
		return done
	}
	answers := map[string]string{
		"a.example": `"addrs":["192.0.2.1","::ffff:192.0.2.2","2001:db8::1"]`,
		"b.example": `"error":"not_found"`,
		"c.example": `"error":"it rains"`,
		"d.example": `"addrs":["192.0.2.1"` + strings.Repeat(`,"192.0.2.1"`, 500) + `]`,
	}
	asked := map[string]<-chan string{}
	for name := range answers {
		asked[name] = ask(name)
	}
	for range answers {
		m := next(t, a.Heard)
		if m["type"] != "resolve" || m["handle"] != 5. {
			t.Errorf("asked %v", m)
		}
		a.Say(`{"type":"resolved","id":%v,%s}`, m["id"], answers[m["name"].(string)])
		a.Say(`{"type":"resolved","id":%v,"error":"late"}`, m["id"])
	}
	for name, want := range map[string]string{
		"a.example": "[192.0.2.1 192.0.2.2 2001:db8::1] <nil>", "b.example": "[] <nil>", "c.example": `[] look up c.example over wlan0: the app says "it rains"`,
		"d.example": "[192.0.2.1" + strings.Repeat(" 192.0.2.1", maxAddrs-1) + "] <nil>",
	} {
		if got := next(t, asked[name]); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Lookup(ctx, link.Link{}, "d.example"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	open := ask("e.example")
	next(t, a.Heard)
	a.HangUp()
	if got := next(t, open); !strings.Contains(got, ErrGone.Error()) {
		t.Errorf("the app goes: %s", got)
	}
	// A Resolver uses the app's answer, and keeps it for a while.
	calls := 0
	r := &link.Resolver{Names: func(context.Context, link.Link, string) ([]netip.Addr, error) {
		calls++
		return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
	}}
	for range 2 {
		got, err := r.Lookup(t.Context(), link.Link{Name: "wlan0"}, "ip4", "x.example")
		if err != nil || len(got) != 1 || got[0].String() != "192.0.2.1" || calls != 1 {
			t.Errorf("%v, %v after %d questions", got, err, calls)
		}
	}
}

// TestTold: messages to the app arrive.
func TestTold(t *testing.T) {
	a := &appbridgetest.App{}
	h := dial(t, a)
	h.Want(true)
	h.Tell(map[string]int{"x": 1})
	h.Want(false)
	for _, want := range []string{`{"cellular":true,"type":"want"}`, `{"status":{"x":1},"type":"status"}`, `{"cellular":false,"type":"want"}`} {
		if got, _ := json.Marshal(next(t, a.Heard)); string(got) != want {
			t.Errorf("said %s, want %s", got, want)
		}
	}
}

func TestOrders(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd := int(file.Fd())
	var lines sync.Map
	a := &appbridgetest.App{Order: func(id uint64) (string, int) {
		line, _ := lines.Load(id)
		return line.(string), fd
	}}
	h := dial(t, a)
	last := uint64(6)
	order := func(line string) {
		last++
		lines.Store(last, line)
		a.Say(`{"type":"fetch","id":%d}`, last)
	}

	order(`{"url":"https://example.com/a","have":5,"validator":"\"v\"","size":9,"place":"p","later":1}` + strings.Repeat(" ", 5000))
	o := next(t, h.Orders())
	if o.URL != "https://example.com/a" || o.Have != 5 || o.Validator != `"v"` || o.Size != 9 || o.Place != "p" {
		t.Errorf("%+v", o)
	}
	if _, err := o.File.WriteAt([]byte("hello"), 3); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(file.Name()); err != nil || string(b) != "\x00\x00\x00hello" {
		t.Errorf("another file: %q, %v", b, err)
	}
	if err := o.Tell(map[string]any{"type": "at", "bytes": 5}); err != nil {
		t.Error(err)
	}
	if m := next(t, a.Steps); m["type"] != "at" || m["bytes"] != 5. {
		t.Errorf("told %v", m)
	}
	select {
	case <-o.Stop():
		t.Error("stopped")
	default:
	}
	a.StopOrder(7)
	next(t, o.Stop())
	if err := o.Tell(map[string]any{"type": "stopped"}); err != nil {
		t.Error("what is stopped must say how far it came:", err)
	}
	if m := next(t, a.Steps); m["type"] != "stopped" {
		t.Errorf("told %v", m)
	}
	o.Close()

	for _, bad := range []string{"", "{}", `{"url":7}`, "[]", strings.Repeat("x", maxLine+1)} { // the next one is taken anyway
		order(bad)
	}
	for i := range 3 * maxOrders {
		url := fmt.Sprint(i)
		order(`{"url":"` + url + `"}`)
		o := next(t, h.Orders())
		if o.URL != url {
			t.Errorf("order %s is %q", url, o.URL)
		}
		o.Close()
	}
	var open []*Order
	for range maxOrders {
		order(`{"url":"open"}`)
		open = append(open, next(t, h.Orders()))
	}
	order(`{"url":"one too many"}`)
	links, err := h.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next(t, links)
	a.Say(oneLine(two))
	next(t, links) // the earlier messages have been handled
	for _, o := range open {
		o.Close()
	}
	order(`{"url":"last"}`)
	o = next(t, h.Orders())
	if o.URL != "last" {
		t.Errorf("got %q", o.URL)
	}
	a.HangUp()
	next(t, o.Stop())
	o.Close()
}

func TestOrderWithoutAFile(t *testing.T) {
	a := &appbridgetest.App{Order: func(id uint64) (string, int) {
		if id == 1 {
			return `{"url":"a"}`, -1
		}
		return `{"url":"b"}`, 0
	}}
	h := dial(t, a)
	a.Say(`{"type":"fetch","id":1}`)
	a.Say(`{"type":"fetch","id":2}`)
	o := next(t, h.Orders())
	defer o.Close()
	if o.URL != "b" {
		t.Errorf("%+v", o)
	}
}

// FuzzMessages: no line from an app causes a panic or creates invalid links.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{appbridgetest.Hello, oneLine(two), `{"type":"resolved","id":1,"addrs":["1.2.3.4"]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsRune(line, '\n') {
			return
		}
		m, err := parse(line)
		if err != nil {
			return
		}
		links, _ := usable(m.Links)
		names := map[string]bool{}
		for _, l := range links {
			if l.Name == "" || len(l.Name) > longestName || names[l.Name] || len(l.Addrs) == 0 || len(l.Addrs) != len(l.Prefixes) {
				t.Errorf("%+v", l)
			}
			names[l.Name] = true
			for i, a := range l.Addrs {
				if !a.IsValid() || a.IsLoopback() || !l.Prefixes[i].Contains(a.WithZone("")) {
					t.Errorf("%s of %s", a, l.Prefixes[i])
				}
			}
		}
	})
}
