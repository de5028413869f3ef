package relay

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// enrolled pairs another client and returns its key.
func (r *rig) enrolled() Key {
	r.Helper()
	path := filepath.Join(r.TempDir(), "client.json")
	if err := Enrol(r.Context(), path, r.invite()); err != nil {
		r.Fatal(err)
	}
	var s clientState
	if err := load(path, &s); err != nil {
		r.Fatal(err)
	}
	return s.Relays[r.address].Key
}

// recorder keeps the bytes written to a connection.
type recorder struct {
	net.Conn
	sent bytes.Buffer
}

func (c *recorder) Write(p []byte) (int, error) {
	c.sent.Write(p)
	return c.Conn.Write(p)
}

// shake makes a connection that a lane could start on. Any tickets that the server issues are kept in tickets.
func (r *rig) shake(key Key, tickets tls.ClientSessionCache) (*tls.Conn, *recorder) {
	r.Helper()
	cfg, err := key.config(func(tls.ConnectionState) error { return nil })
	if err != nil {
		r.Fatal(err)
	}
	cfg.NextProtos, cfg.ServerName, cfg.ClientSessionCache, cfg.SessionTicketsDisabled = []string{laneProtocol}, "relay", tickets, false
	raw, err := net.Dial("tcp", r.address)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	rec := &recorder{Conn: raw}
	t := tls.Client(rec, cfg)
	if err := t.Handshake(); err != nil {
		r.Fatal(err)
	}
	return t, rec
}

// hail sends a well-formed hello and returns the status of the server's reply.
func (r *rig) hail(t *tls.Conn, kind byte, id [idSize]byte, secret []byte, lane uint32) byte {
	r.Helper()
	said := append(append([]byte{kind}, id[:]...), secret...)
	said = binary.BigEndian.AppendUint32(said, lane)
	mac, err := proof(t.ConnectionState(), secret, said)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := t.Write(append(said, mac...)); err != nil {
		r.Fatal(err)
	}
	reply := make([]byte, replySize)
	if _, err := io.ReadFull(t, reply); err != nil {
		r.Fatal(err)
	}
	return reply[0]
}

// lanesAt returns how many sessions and lanes the server has.
func (r *rig) lanesAt() (sessions, lanes int) {
	all := r.at.all()
	for _, v := range all {
		lanes += v.count()
	}
	return len(all), lanes
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// TestReplay: bytes that a client sent do not make a lane a second time, and nothing lets a client resume a connection.
func TestReplay(t *testing.T) {
	r := newRig(t, loopback)
	key, tickets := r.enrolled(), tls.NewLRUClientSessionCache(0)
	id, secret := [idSize]byte(random(idSize)), random(secretSize)
	c, rec := r.shake(key, tickets)
	if status := r.hail(c, helloNew, id, secret, 1); status != replyOK {
		t.Fatal(status)
	}
	r.until("there is a lane", func() bool { _, n := r.lanesAt(); return n == 1 })
	turned := r.at.Status().Turned
	again, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Write(rec.sent.Bytes()); err != nil {
		t.Fatal(err)
	}
	_ = again.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.Copy(io.Discard, again) // until the server closes it
	r.until("it is turned away", func() bool { return r.at.Status().Turned == turned+1 })
	if sessions, lanes := r.lanesAt(); sessions != 1 || lanes != 1 {
		t.Errorf("%d sessions, %d lanes", sessions, lanes)
	}
	if c, _ := r.shake(key, tickets); c.ConnectionState().DidResume {
		t.Error("a connection was resumed")
	}
}

// TestSplicing: a lane joins a session only with its secret and by its key.
func TestSplicing(t *testing.T) {
	r := newRig(t, loopback)
	key, other := r.enrolled(), r.enrolled()
	id, secret := [idSize]byte(random(idSize)), random(secretSize)
	first, _ := r.shake(key, nil)
	if status := r.hail(first, helloNew, id, secret, 1); status != replyOK {
		t.Fatal(status)
	}
	for _, c := range []struct {
		name   string
		key    Key
		kind   byte
		id     [idSize]byte
		secret []byte
		want   byte
	}{
		{"another client that knows the secret", other, helloJoin, id, secret, replyUnknown},
		{"the same, as if it were new", other, helloNew, id, secret, replyUnknown},
		{"the same client with another secret", key, helloJoin, id, random(secretSize), replyUnknown},
		{"a session that is not there", key, helloJoin, [idSize]byte{}, secret, replyUnknown},
		{"its own", key, helloJoin, id, secret, replyOK},
	} {
		conn, _ := r.shake(c.key, nil)
		if got := r.hail(conn, c.kind, c.id, c.secret, 2); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
	r.until("there are two lanes", func() bool { _, n := r.lanesAt(); return n == 2 })
	if sessions, _ := r.lanesAt(); sessions != 1 {
		t.Errorf("%d sessions", sessions)
	}
}

// TestFlood: beside 10,000 silent connections from 313 addresses, open tunnels continue, a lane that breaks comes back, and the
// server holds at most maxHalfOpen of the connections.
func TestFlood(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	tunnel := r.dial(echoes(t))
	defer tunnel.Close()
	r.echo(tunnel, 1000)
	before := runtime.NumGoroutine()
	const silent = 10_000
	var most int
	for i := range silent {
		from := i / maxOfAddress
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(from>>8), byte(from))}}
		c, err := d.DialContext(t.Context(), "tcp", r.address)
		if err != nil {
			t.Fatalf("connection %d: %v", i+1, err)
		}
		defer c.Close()
		if i%100 == 0 {
			most = max(most, runtime.NumGoroutine())
		}
	}
	r.echo(tunnel, 1<<20)
	if most > before+3*maxHalfOpen+100 {
		t.Errorf("%d goroutines, %d before", most, before)
	}
	r.cut("wifi", false)
	r.echo(tunnel, 1<<20)
	r.lanes(2)
	r.until("all are turned away", func() bool { return r.at.Status().Turned >= silent })
}

// TestSlowHello: a client that sends a little now and then is not waited for.
func TestSlowHello(t *testing.T) {
	t.Parallel() // it waits for helloTime
	r := newRig(t)
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252}) // the start of a ClientHello of 512 bytes
	r.until("it is turned away", func() bool {
		_, _ = c.Write([]byte{3})
		return r.at.Status().Turned == 1
	})
}

// TestSlowReader: a tunnel that is not read stops its origin, and does not hold up any other.
func TestSlowReader(t *testing.T) {
	r := newRig(t, loopback)
	r.start()
	r.lanes(2)
	var sent atomic.Int64
	over := make(chan struct{})
	endless := origin(t, func(c *net.TCPConn) {
		defer close(over)
		for b := make([]byte, copyBuffer); ; {
			n, err := c.Write(b)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	slow, quick := r.dial(endless), r.dial(echoes(t))
	defer quick.Close()
	r.until("much has come", func() bool { return sent.Load() > 4<<20 })
	for range 16 {
		r.echo(quick, 256<<10)
	}
	// A window of 8 MiB, and what the sockets on both sides of the server hold.
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("the origin has sent %d bytes that nobody reads", n)
	}
	if n := r.at.Status().Held; n > serverBudget {
		t.Errorf("the server holds %d bytes", n)
	}
	slow.Close()
	<-over
}

// TestTampered: a bit that changes on the way ends a lane, and does not reach a tunnel.
func TestTampered(t *testing.T) {
	r := newRig(t, loopback)
	at := r.address
	var armed atomic.Bool
	r.address = origin(t, func(c *net.TCPConn) {
		to, err := net.Dial("tcp", at)
		if err != nil {
			return
		}
		var up sync.WaitGroup
		up.Go(func() { _, _ = io.Copy(to, c); to.Close() })
		_, _ = io.Copy(tamperer{c, &armed}, to)
		c.Close()
		up.Wait()
	})
	r.start()
	r.lanes(2)
	tunnel := r.dial(echoes(t))
	defer tunnel.Close()
	for range 3 {
		armed.Store(true)
		r.echo(tunnel, 1<<20)
		if armed.Load() {
			t.Error("nothing was changed")
		}
		r.lanes(2)
	}
}

// tamperer changes a bit of the bytes written, once each time it is armed.
type tamperer struct {
	io.Writer
	armed *atomic.Bool
}

func (w tamperer) Write(p []byte) (int, error) {
	if len(p) > 100 && w.armed.CompareAndSwap(true, false) {
		p = bytes.Clone(p)
		p[len(p)/2] ^= 1
	}
	return w.Writer.Write(p)
}

// TestImpostor: no lane is made to a server with another key than the paired one.
func TestImpostor(t *testing.T) {
	r, other := newRig(t), newRig(t)
	if err := Enrol(t.Context(), r.client, r.invite()); err != nil {
		t.Fatal(err)
	}
	if _, err := change(r.client, func(s *clientState) error {
		s.Relays[other.address] = s.Relays[r.address] // the other server took over the address
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r.address = other.address
	r.connect()
	r.until("both links have failed for its key", func() bool {
		all := r.out.Status().Lanes
		return len(all) == 2 && !slices.ContainsFunc(all, func(l LaneStatus) bool { return l.Up || l.Failure != ErrWrongKey.Error() || l.Code != CodeWrongKey })
	})
	if sessions, _ := other.lanesAt(); sessions != 0 {
		t.Errorf("%d sessions", sessions)
	}
}
