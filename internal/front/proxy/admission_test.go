package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/net/transport"
)

func TestUsers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	o, heads := answer(t, ok)
	var asked atomic.Int32
	by := func(uid uint32, err error) func(*proxy.Config) {
		return func(c *proxy.Config) {
			c.Users = []uint32{0, 1000}
			c.Owner = func(local, remote netip.AddrPort) (uint32, error) {
				asked.Add(1)
				if !local.Addr().IsLoopback() || !remote.Addr().IsLoopback() || local == remote {
					t.Errorf("asked for %v and %v", local, remote)
				}
				return uid, err
			}
		}
	}
	for _, tt := range []struct {
		name  string
		uid   uint32
		err   error
		admit bool
		code  string
	}{
		{"the user who started it", 1000, nil, true, "200"},
		{"root", 0, nil, true, "200"},
		{"another user", 1001, nil, false, "403"},
		{"nobody is there", 0, fmt.Errorf("asked: %w", admission.ErrUnknown), false, "403"},
		{"cannot tell now", 0, syscall.EMFILE, false, "503"},
	} {
		t.Run("R185 "+tt.name, func(t *testing.T) {
			g := start(t, by(tt.uid, tt.err))
			asked.Store(0)
			if tt.admit {
				c := g.send("GET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n")
				c.wantHead("200")
				<-heads
				b := make([]byte, 2)
				if _, err := c.br.Read(b); err != nil {
					t.Fatal(err)
				}
				c.send("GET " + o.url("/") + " HTTP/1.1\r\nHost: x\r\n\r\n")
				c.wantHead("200")
				<-heads
			} else {
				for _, line := range []string{"GET " + o.url("/"), "CONNECT " + o.addr, "GET /", "POST " + o.url("/"), "BREW " + o.url("/")} {
					c := g.send(line + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
					c.wantHead(tt.code)
					if _, err := c.rest(); err != nil {
						t.Error(err)
					}
					asked.Add(-1)
				}
				asked.Add(1)
				if n := o.dials(); n != 0 && !tt.admit {
					select {
					case h := <-heads:
						t.Errorf("the origin saw %q", h)
					default:
					}
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times, want once per connection", n)
			}
		})
	}
	t.Run("R185 everybody", func(t *testing.T) {
		g := start(t, by(1001, errors.New("cannot tell")), func(c *proxy.Config) { c.Users = nil })
		g.get(o.url("/")).wantHead("200")
		<-heads
	})
}

// TestStrangers: connections of other users do not take places from a user.
func TestStrangers(t *testing.T) {
	const owner, stranger, third = 1000, 1001, 1002
	var uid, asked atomic.Int32
	told := func(users ...uint32) func(*proxy.Config) {
		asked.Store(0)
		return func(c *proxy.Config) {
			c.Users = users
			c.Owner = func(_, _ netip.AddrPort) (uint32, error) {
				u := uid.Load()
				asked.Add(1) // open waits for this before the next user's turn
				return uint32(u), nil
			}
		}
	}
	open := func(g *rig, u int32, n int) (conns []*conn) {
		uid.Store(u)
		before := asked.Load()
		for range n {
			conns = append(conns, g.dial())
		}
		for asked.Load() < before+int32(n) {
			runtime.Gosched()
		}
		return conns
	}
	const toSelf = "GET / HTTP/1.1\r\nHost: x\r\n\r\n" // 400 is the answer to an admitted client
	t.Run("R185 R190 600 silent connections of a user who may not use it", func(t *testing.T) {
		g := start(t, told(owner))
		silent := open(g, stranger, 600)
		for _, c := range open(g, owner, 200) {
			c.send(toSelf)
			c.wantHead("400")
		}
		refused := open(g, stranger, 1)[0]
		refused.send(toSelf)
		refused.wantHead("403")
		if rest := silent[0].ended(); rest != "" { // it made room for later ones
			t.Errorf("a silent connection gets %q", rest)
		}
	})
	t.Run("R190 two users with all connections there are", func(t *testing.T) {
		g := start(t, told())
		open(g, owner, 512)
		open(g, stranger, 512)
		for i, c := range open(g, third, 65) {
			c.send(toSelf)
			if i < 64 {
				c.wantHead("400")
			} else {
				c.wantHead("503")
			}
		}
	})
	t.Run("R190 200 users", func(t *testing.T) {
		g := start(t, told())
		for u := range int32(200) {
			open(g, 100_000+u, 10)
		}
		late := open(g, 100_200, 1)[0]
		late.send(toSelf)
		late.wantHead("503")
		for _, c := range open(g, int32(os.Getuid()), 64) {
			c.send(toSelf)
			c.wantHead("400")
		}
	})
	t.Run("R190 512 silent connections of apps that are not told apart", func(t *testing.T) {
		g := start(t)
		var silent []*conn
		for range 600 {
			silent = append(silent, g.dial())
		}
		c := g.dial()
		c.send(toSelf)
		c.wantHead("400")
		if rest := silent[0].ended(); rest != "" {
			t.Errorf("a silent connection gets %q", rest)
		}
	})
	t.Run("R190 1024 redirected connections of a user", func(t *testing.T) {
		arrived, release := make(chan struct{}, 512), make(chan struct{})
		defer close(release)
		o := serve(t, func(c *conn) {
			if head, err := c.head(); err == nil && strings.HasPrefix(head, "GET /held") {
				arrived <- struct{}{}
				<-release
			} else if err == nil {
				c.send(small)
			}
		})
		g := redirected(t, o.addr, told())
		uid.Store(stranger)
		held := 0
		hold := func() {
			g.dial().send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
			held++
		}
		for range 512 {
			hold()
		}
		for range 512 {
			<-arrived
		}
		for held-g.proxy.Tunnels() < 512 { // some were silent for too long on a busy machine and became tunnels, which count as such
			hold()
			<-arrived
		}
		for range 512 {
			c, err := net.Dial("tcp", g.addr)
			if err == nil {
				_, err = io.Copy(io.Discard, c)
				c.Close()
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("one too many ends with %v", err)
			}
		}
		c := open(g, owner, 1)[0]
		c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		c.wantHead("200")
	})
}

func TestManyUsers(t *testing.T) {
	t.Run("R190 more than 512 connections", func(t *testing.T) {
		g := start(t, func(c *proxy.Config) { c.Owner = func(_, _ netip.AddrPort) (uint32, error) { return 7, nil } })
		var open []*conn
		for range 513 { // accepted in this order
			open = append(open, g.dial())
		}
		c := open[len(open)-1]
		c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		head := c.wantHead("503")
		if len(fieldsOf(head, "Retry-After")) != 1 || !strings.Contains(head, "connection_limit_reached") {
			t.Errorf("head %q", head)
		}
		for _, c := range open {
			c.Close()
		}
		for { // there is room again once the server has noticed
			c := g.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			head, err := c.head()
			if err == nil && strings.HasPrefix(head, "HTTP/1.1 400") {
				break
			}
			c.Close()
		}
	})
	t.Run("R190 more than 128 tunnels of a user", func(t *testing.T) {
		o := serve(t, func(c *conn) { _, _ = c.rest() })
		var uid atomic.Uint32
		var stranger atomic.Bool
		g := start(t, func(c *proxy.Config) {
			c.Owner = func(_, _ netip.AddrPort) (uint32, error) {
				if stranger.Load() {
					return 0, errors.New("not told")
				}
				return uid.Load(), nil
			}
		})
		var drain sync.WaitGroup
		var dials atomic.Int32
		defer drain.Wait()
		defer close(g.f.dialed)
		drain.Go(func() {
			for range g.f.dialed {
				dials.Add(1)
			}
		})
		tunnel := func(status string) *conn {
			t.Helper()
			c := g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: x\r\n\r\n")
			c.wantHead(status)
			return c
		}
		var open []net.Conn
		for range 128 {
			open = append(open, tunnel("200"))
		}
		tunnel("503")
		uid.Store(7)
		tunnel("200").Close()    // another user's
		for dials.Load() < 129 { // each is noted before it is made
			runtime.Gosched()
		}
		if n := dials.Load(); n != 129 {
			t.Errorf("%d dials: one is for the refused tunnel", n)
		}
		stranger.Store(true)
		for range 384 {
			open = append(open, tunnel("200")) // users that cannot be distinguished do not count as one user
		}
		tunnel("503") // and leave room for requests
		stranger.Store(false)
		uid.Store(0)
		for _, c := range open[:2] {
			c.Close()
		}
		for {
			c := g.send("CONNECT " + o.addr + " HTTP/1.1\r\nHost: x\r\n\r\n")
			head, err := c.head()
			c.Close()
			if err == nil && strings.HasPrefix(head, "HTTP/1.1 200") {
				break
			}
		}
	})
	t.Run("R190 R191 a GET beyond 128 transfers is passed through", func(t *testing.T) {
		release := make(chan struct{})
		o := serve(t, func(c *conn) {
			head, err := c.head()
			if err != nil {
				return
			}
			if strings.Contains(head, "/held") {
				c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
				<-release
			} else {
				c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		defer close(release)
		g := start(t)
		for range 128 {
			g.get(o.url("/held")).wantHead("200")
		}
		g.get(o.url("/x")).wantHead("200")
		g.f.mu.Lock()
		defer g.f.mu.Unlock()
		for i, r := range g.f.requests {
			if reason := transport.OptionsOf(r.Context()).Undivided; (reason == "crowded") != (i == 128) {
				t.Errorf("request %d: reason %q", i, reason)
			}
		}
	})
}
