package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
	"github.com/tributary-http/tributary/internal/net/link"
)

// rig is a server and a paired client with two emulated links.
type rig struct {
	*testing.T
	server, client string // state files
	address        string
	at             *Server
	out            *Client
	log            bytes.Buffer
	reload         chan os.Signal
	stop           func()        // tells the server to stop
	over           chan struct{} // closed when it has stopped

	mu    sync.Mutex
	conns map[string][]net.Conn // by link
	down  map[string]bool

	carried atomic.Int64 // bytes of all connections over links, both ways
}

func newRig(t *testing.T, allow ...netip.Prefix) *rig {
	dir := t.TempDir()
	r := &rig{
		T: t, server: filepath.Join(dir, "server.json"), client: filepath.Join(dir, "client.json"),
		conns: map[string][]net.Conn{}, down: map[string]bool{}, reload: make(chan os.Signal, 1), over: make(chan struct{}),
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		State: r.server, Log: slog.New(slog.NewTextHandler(&lockedWriter{w: &r.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Allow: allow, Reload: r.reload,
	}
	r.at, r.stop = s, cancel
	go func() {
		defer close(r.over)
		if err := s.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-r.over
	})
	return r
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (r *rig) invite() Invitation {
	r.Helper()
	i, err := Invite(r.server, r.address, Limits{})
	if err != nil {
		r.Fatal(err)
	}
	return i
}

// start pairs and runs the client, and waits for a lane on each link.
func (r *rig) start() {
	r.Helper()
	if err := Enrol(r.Context(), r.client, r.invite()); err != nil {
		r.Fatal(err)
	}
	r.connect()
}

func (r *rig) connect() {
	r.Helper()
	var err error
	if r.out, err = NewClient(r.client, r.address, 64<<20, slog.New(slog.DiscardHandler)); err != nil {
		r.Fatal(err)
	}
	r.out.conns = lanes.NewConnections(1) // a busy machine loses packets on loopback, too
	dial := link.DialFunc(func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		r.mu.Lock()
		down := r.down[l.Name]
		r.mu.Unlock()
		if down {
			return nil, errors.New("the link is down")
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			r.mu.Lock()
			r.conns[l.Name] = append(r.conns[l.Name], c)
			r.mu.Unlock()
			c = measured{c.(*net.TCPConn), &r.carried}
		}
		return c, err
	})
	r.out.SetLinks(dial.Over(link.Link{Name: "wifi"}, link.Link{Name: "lte"}))
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { r.out.Run(ctx) })
	r.Cleanup(func() { cancel(); runs.Wait() })
}

// lanes waits until there are n lanes.
func (r *rig) lanes(n int) {
	r.Helper()
	r.until(fmt.Sprintf("there are %d lanes", n), func() bool {
		r.out.mu.Lock()
		v := r.out.current
		r.out.mu.Unlock()
		return v != nil && v.count() == n
	})
}

func (r *rig) until(what string, met func() bool) {
	r.Helper()
	deadline := time.After(time.Minute)
	for tick := time.Tick(2 * time.Millisecond); !met(); {
		select {
		case <-tick:
		case <-deadline:
			r.Fatalf("waited in vain until %s", what)
		}
	}
}

// cut breaks all connections of a link, which stays down until up.
func (r *rig) cut(name string, down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[name] = down
	for _, c := range r.conns[name] {
		c.Close()
	}
	r.conns[name] = nil
}

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// origin listens and gives each connection to serve.
func origin(t *testing.T, serve func(c *net.TCPConn)) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { ln.Close(); conns.Wait() })
	return ln.Addr().String()
}

func (r *rig) dial(addr string) net.Conn {
	r.Helper()
	c, err := r.out.Dial(r.Context(), addr)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// TestCarries: bytes go both ways, half-closed, over lanes that come and go.
func TestCarries(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	body := bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16*8)
	addr := origin(t, func(c *net.TCPConn) {
		h := sha256.New()
		_, _ = io.Copy(h, c)
		_, _ = c.Write(h.Sum(nil))
		_, _ = c.Write(body)
	})
	c := r.dial(addr)
	defer c.Close()
	flaps := make(chan struct{})
	go func() {
		defer close(flaps)
		_, err := c.Write(body)
		if err == nil {
			err = c.(*Conn).CloseWrite()
		}
		if err != nil {
			t.Error(err)
		}
	}()
	for i := range 4 { // never both at once
		r.lanes(2)
		r.cut([]string{"wifi", "lte"}[i%2], false)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	<-flaps
	sum := sha256.Sum256(body)
	if !bytes.Equal(got, append(sum[:], body...)) {
		t.Errorf("%d bytes, or wrong ones", len(got))
	}
	carried, least := int64(0), int64(2*len(body))
	for _, l := range r.out.Status().Lanes {
		if l.Bytes == 0 {
			t.Errorf("%s carried nothing", l.Link)
		}
		carried += l.Bytes
	}
	if carried < least || carried > 2*least { // frames, acknowledgements, and what was sent again after a cut
		t.Errorf("the lanes carried %d bytes for %d", carried, least)
	}
}

// TestOutlivesAllLinks: a stream waits until a link returns.
func TestOutlivesAllLinks(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	c := r.dial(origin(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	defer c.Close()
	r.cut("wifi", true)
	r.cut("lte", true)
	r.lanes(0)
	if _, err := r.out.Dial(t.Context(), "127.0.0.1:1"); !errors.Is(err, ErrAway) {
		t.Errorf("without lanes: %v", err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	r.cut("lte", false)
	buf := make([]byte, 5)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
		t.Errorf("%q, %v", buf, err)
	}
}

// TestEgress: destinations that a server must not connect to, under any name.
func TestEgress(t *testing.T) {
	r := newRig(t)
	r.start()
	r.lanes(2)
	for _, addr := range []string{
		"127.0.0.1:80", "localhost:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "169.254.169.254:80", "10.0.0.1:80", "192.168.0.1:80",
		"100.64.0.1:80", "[fe80::1]:80", "[fd00::1]:80", "[64:ff9b::7f00:1]:80", "93.184.215.14:25", "nonsense",
		"198.18.0.1:80", "240.0.0.1:80", "192.0.0.1:80", "192.0.2.1:80", "[100::1]:80", "[2001:db8::1]:80", "[5f00::1]:80",
	} {
		_, err := r.out.Dial(t.Context(), addr)
		if e, ok := errors.AsType[*ResetError](err); !ok || e.Cause != lanes.CauseRefused {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if s := r.out.Status(); s.Failed < 20 || s.Failure != (&ResetError{lanes.CauseRefused}).Error() {
		t.Errorf("%d tunnels were not carried: %q", s.Failed, s.Failure)
	}
}

// TestStrangers: an invitation works once; other keys, wrong proofs and other servers are rejected.
func TestStrangers(t *testing.T) {
	r := newRig(t, loopback)
	i := r.invite()
	if err := Enrol(t.Context(), r.client, i); err != nil {
		t.Fatal(err)
	}
	t.Run("used token", func(t *testing.T) {
		if err := Enrol(t.Context(), filepath.Join(t.TempDir(), "other.json"), i); err == nil {
			t.Error("enrolled")
		}
	})
	t.Run("expired token", func(t *testing.T) {
		i := r.invite()
		if err := enrol(r.server, i.token, "x", time.Now().Add(tokenLife+time.Second)); !errors.Is(err, errToken) {
			t.Error(err)
		}
	})
	t.Run("wrong server", func(t *testing.T) {
		i := r.invite()
		i.Server = "other"
		if err := Enrol(t.Context(), filepath.Join(t.TempDir(), "other.json"), i); !strings.Contains(fmt.Sprint(err), "another key") {
			t.Error(err)
		}
	})
	connect := func(t *testing.T, key Key) *tls.Conn {
		cfg, err := key.config(func(tls.ConnectionState) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		cfg.NextProtos = []string{laneProtocol}
		c, err := tls.Dial("tcp", r.address, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	silent := func(t *testing.T, c *tls.Conn) {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if got, err := io.ReadAll(c); len(got) > 0 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %x, %v", got, err)
		}
	}
	t.Run("unknown key", func(t *testing.T) {
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, key)
		_, _ = c.Write(make([]byte, helloSize))
		silent(t, c)
	})
	var s clientState
	if err := load(r.client, &s); err != nil {
		t.Fatal(err)
	}
	t.Run("hello of another connection", func(t *testing.T) {
		key := s.Relays[r.address].Key
		one, other := connect(t, key), connect(t, key)
		said := make([]byte, helloSize-sha256.Size)
		said[0] = helloNew
		mac, err := proof(one.ConnectionState(), said[1+idSize:1+idSize+secretSize], said)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = other.Write(append(said, mac...))
		silent(t, other)
	})
	t.Run("secrets", func(t *testing.T) {
		if text := fmt.Sprintf("%v %+v %v", s, i, i); strings.Contains(text, i.Link()) || !strings.Contains(text, "[key]") {
			t.Error(text)
		}
		if _, err := ParseInvitation(i.Link() + "x"); err == nil || strings.Contains(err.Error(), "#A") {
			t.Error(err)
		}
		if got, err := ParseInvitation(i.Link()); err != nil || !bytes.Equal(got.token, i.token) || got.Server != i.Server {
			t.Error(got, err)
		}
	})
}

// TestHalfOpen: silent connections do not keep others out for long.
func TestHalfOpen(t *testing.T) {
	r := newRig(t, loopback)
	for range maxHalfOpen + 50 {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	r.until("a client is let in", func() bool { return Enrol(t.Context(), r.client, r.invite()) == nil })
}

// TestJoining: a lane counts from its admission on, so that a session does not exceed its limit, and is not forgotten while a
// lane joins.
func TestJoining(t *testing.T) {
	s := &Server{sessions: map[[idSize]byte]*served{}, of: map[KeyID]int{}}
	join := func(first bool) (*served, byte) {
		return s.session([idSize]byte{1}, make([]byte, secretSize), "key", first)
	}
	v, status := join(true)
	if status != replyOK {
		t.Fatal(status)
	}
	s.forget(v) // its time is over
	select {
	case <-v.done:
		t.Fatal("forgotten while its first lane joins")
	default:
	}
	for range maxLanes - 1 {
		if _, status := join(false); status != replyOK {
			t.Fatal(status)
		}
	}
	if _, status := join(false); status != full {
		t.Errorf("status %d for a lane too many", status)
	}
	for range maxLanes {
		s.joined(v)
	}
	s.forget(v)
	s.ended.Wait()
	if len(s.sessions) != 0 {
		t.Error("a session without lanes is kept")
	}
}

// TestRestarts: sessions without lanes, left behind by a client that restarts, make room for another one of its key. Those with
// lanes and those of other keys stay.
func TestRestarts(t *testing.T) {
	s := &Server{sessions: map[[idSize]byte]*served{}, of: map[KeyID]int{}}
	join := func(id byte, key KeyID) (*served, byte) {
		return s.session([idSize]byte{id}, make([]byte, secretSize), key, true)
	}
	other, _ := join(99, "other")
	s.joined(other)
	var all []*served
	for i := range maxSessions {
		v, status := join(byte(i), "key")
		if status != replyOK {
			t.Fatal(status)
		}
		all = append(all, v)
	}
	if _, status := join(50, "key"); status != full {
		t.Errorf("status %d though all sessions have lanes", status)
	}
	for i, v := range []*served{all[2], all[1]} {
		v.alone = time.Unix(int64(i), 0)
		s.joined(v)
	}
	v, status := join(51, "key")
	if status != replyOK {
		t.Fatalf("status %d", status)
	}
	<-all[2].done
	if len(s.sessions) != maxSessions+1 || s.of["key"] != maxSessions {
		t.Errorf("%d sessions, %d of the key", len(s.sessions), s.of["key"])
	}
	for _, v := range append(all, v, other) {
		v.end(ErrAway)
	}
	s.ended.Wait()
	if len(s.sessions)+len(s.of) != 0 {
		t.Errorf("%d sessions, %d keys are left", len(s.sessions), len(s.of))
	}
}

// TestRemovedKey: the sessions of a removed key end, and it gets no other.
func TestRemovedKey(t *testing.T) {
	r := newRig(t)
	r.start()
	r.lanes(2)
	known, err := Clients(r.server)
	if err != nil || len(known) != 1 {
		t.Fatal(known, err)
	}
	r.at.expel()
	if n := len(r.at.all()); n != 1 {
		t.Fatalf("%d sessions", n)
	}
	for k := range known {
		if _, err := Remove(r.server, "?"); !errors.Is(err, ErrNoClient) {
			t.Error(err)
		}
		if removed, err := Remove(r.server, string(k)[:8]); removed != k || err != nil {
			t.Fatal(removed, err)
		}
	}
	r.at.expel()
	r.until("its session has ended", func() bool { return len(r.at.all()) == 0 })
	r.until("the lanes are gone", func() bool {
		r.out.mu.Lock()
		v := r.out.current
		r.out.mu.Unlock()
		return v == nil || v.count() == 0
	})
	r.until("the client is told that it is not accepted", func() bool {
		s := r.out.Status()
		return len(s.Lanes) == 2 && s.Lanes[0].Code == CodeNotAccepted
	})
}

// TestRoster: the file is read when it has changed, however often strangers connect.
func TestRoster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.json")
	r := roster{path: path}
	if r.knows("stranger") {
		t.Error("a missing file knows a stranger")
	}
	pair := func(k KeyID) {
		t.Helper()
		if _, err := change(path, func(s *serverState) error {
			s.Clients = map[KeyID]time.Time{k: time.Now()}
			return s.ensureKey()
		}); err != nil {
			t.Fatal(err)
		}
	}
	pair("alice")
	if !r.knows("alice") || r.knows("stranger") || r.knows("") {
		t.Error("wrong answer")
	}
	before := r.read
	for range 100 {
		r.knows("stranger")
	}
	if before == nil || r.read != before {
		t.Error("the file was read again")
	}
	pair("bob")
	if r.knows("alice") || !r.knows("bob") {
		t.Error("a change is not seen")
	}
	if r.known.Key.private != nil {
		t.Error("it keeps the server's private key")
	}
}

// at is a connection from an address.
type at struct {
	net.Conn
	addr string
}

func (a at) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(a.addr), 1234))
}

// TestDoorway: one address does not keep out the others.
func TestDoorway(t *testing.T) {
	var d doorway
	var leave []func()
	enter := func(addr string) bool {
		f, ok := d.enter(at{addr: addr})
		if ok {
			leave = append(leave, f)
		}
		return ok
	}
	for i := range 2 * maxOfAddress {
		if enter("192.0.2.1") != (i < maxOfAddress) || enter(fmt.Sprintf("2001:db8::%x", i+1)) != (i < maxOfAddress) {
			t.Fatalf("connection %d", i+1)
		}
	}
	if !enter("192.0.2.2") || !enter("2001:db8:0:1::1") || enter("::ffff:192.0.2.1") {
		t.Error("another address")
	}
	for i := 0; len(leave) < maxHalfOpen; i++ {
		enter(fmt.Sprintf("198.51.100.%d", i))
	}
	if enter("203.0.113.1") {
		t.Error("more than all")
	}
	for _, f := range leave {
		f()
	}
	if d.all != 0 || len(d.of) != 0 {
		t.Errorf("%d, %v are left", d.all, d.of)
	}
}

// TestStatus: the status reports over which links there are lanes, and why there is none over the others.
func TestStatus(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("qemu-user has no TCP_INFO")
	}
	r := newRig(t)
	r.mu.Lock()
	r.down["lte"] = true
	r.mu.Unlock()
	r.start()
	r.lanes(1)
	r.until("the failure is known", func() bool { s := r.out.Status(); return len(s.Lanes) == 2 && s.Lanes[0].Failure != "" })
	s := r.out.Status()
	want := []LaneStatus{
		{Link: "lte", Failure: "the link is down", Code: CodeUnreachable}, {Link: "wifi", Up: true, Connections: 1, RTT: s.Lanes[1].RTT, Bytes: s.Lanes[1].Bytes},
	}
	if s.Address != r.address || !slices.Equal(s.Lanes, want) || s.Lanes[1].RTT <= 0 || s.Streams != 0 {
		t.Errorf("%+v", s)
	}
}
