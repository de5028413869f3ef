package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	flaps  = 20          // times that each link goes dark
	pushed = 100_000_000 // bytes that git pushes meanwhile
	away   = 30 * time.Second
)

// TestRelayFlaps: a git push, a session of small messages and a series of segments go through the relay while its links
// go dark in turn: no connection breaks, every byte is right, and no message takes more than a second. Then one link
// stays away for half a minute.
func TestRelayFlaps(t *testing.T) {
	if !matrix() {
		t.Skip("it takes minutes: make matrix")
	}
	need(t, "git", "git")
	r := newRig(t, netlab.Scenario{Name: "flaps", Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 12*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 12*netlab.Mbit, 40*time.Millisecond),
	}}, netlab.NginxOptions{})
	r.relayed()
	bare, dir := filepath.Join(r.nginx.Root(), "repo.git"), filepath.Join(filepath.Dir(r.file()), "first")
	r.local("git", "init", "-q", "--bare", "-b", "main", bare)
	r.local("git", "-C", bare, "config", "http.receivepack", "true")
	r.local("git", "init", "-q", "-b", "main", dir)
	r.write(filepath.Join(dir, "a"), r.content(pushed))
	r.commit(dir, "a")
	remote := r.serveHTTPAt(relayedAddr+":8211", r.gitBackend(filepath.Dir(bare))) + "/repo.git"
	session, longest := r.talk()
	o := r.object(1_000_000)
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	flapped := make(chan struct{})
	segments := make(chan error, 1)
	var fetched atomic.Int64
	go func() {
		for {
			body, err := r.lab.Client(r.ctx, "curl", "-sS", "--fail", "-x", proxyURL, "--cacert", cert.CA, "--connect-to", "::"+relayedAddr+":",
				r.nginx.SecureURL(o)).Output()
			if err == nil && len(body) != int(o.Size) {
				err = fmt.Errorf("a segment has %d bytes", len(body))
			}
			if err != nil {
				segments <- err
				return
			}
			fetched.Add(1)
			select {
			case <-flapped:
				segments <- nil
				return
			default:
			}
		}
	}()
	push := make(chan string, 1)
	go func() {
		cmd := r.lab.Client(r.ctx, "git", "-c", "http.postBuffer=1048576", "-c", "http.proxy="+proxyURL, "-C", dir, "push", "-q", remote, "main")
		cmd.Env = append(cmd.Environ(), "HOME="+r.lab.Dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = fmt.Appendf(out, "%v", err)
		}
		push <- string(out)
	}()
	flap := func(name string, least time.Duration) {
		r.dark(name, true)
		before, ends := session.Load(), time.Now().Add(least)
		r.until("messages go on without "+name, func() bool { return session.Load() > before+10 && time.Now().After(ends) })
		r.dark(name, false)
		_, carried := r.carried(name)
		r.until(name+" carries bytes again", func() bool { _, n := r.carried(name); return n > carried+100_000 })
	}
	for i := range flaps {
		for _, name := range r.lab.LinkNames() {
			flap(name, 0)
		}
		t.Logf("flap %d: %d messages, the longest round trip %s; %d segments, git ended %t", i+1, session.Load(), time.Duration(longest.Load()), fetched.Load(), len(push) > 0)
	}
	flap("wifi", away)
	close(flapped)
	if err := <-segments; err != nil {
		t.Error("segments:", err)
	}
	if said := <-push; said != "" {
		t.Error("git push:", said)
	}
	r.local("git", "-C", bare, "fsck", "--strict")
	if !bytes.Equal([]byte(r.local("git", "-C", bare, "rev-parse", "main")), []byte(r.local("git", "-C", dir, "rev-parse", "HEAD"))) {
		t.Error("git pushed something else")
	}
	t.Logf("%d messages, the longest round trip %s; %d segments of 1 MB", session.Load(), time.Duration(longest.Load()), fetched.Load())
	if time.Duration(longest.Load()) > time.Second {
		t.Error("the session paused for more than a second")
	}
}

// dark sets whether a link loses every packet.
func (r *rig) dark(name string, on bool) {
	r.Helper()
	if err := r.lab.Link(name).Blackhole(on); err != nil {
		r.Fatal(err)
	}
}

// talk sends a message through a tunnel as soon as the last one has come back. It counts the messages and notes the
// longest round trip.
func (r *rig) talk() (count, longest *atomic.Int64) {
	r.Helper()
	var ln net.Listener
	err := r.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp", relayedAddr+":8091")
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	served, talked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		if c, err := ln.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := r.lab.DialContext(r.ctx, "tcp", strings.TrimPrefix(proxyURL, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", ln.Addr(), ln.Addr())
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
		r.Fatal(resp, err)
	}
	count, longest = new(atomic.Int64), new(atomic.Int64)
	over := make(chan struct{})
	go func() {
		defer close(talked)
		buf := make([]byte, 64)
		for {
			began := time.Now()
			_, err := c.Write(buf)
			if err == nil {
				_, err = io.ReadFull(in, buf)
			}
			if err != nil {
				select {
				case <-over:
				default:
					r.Error("the session has ended:", err)
				}
				return
			}
			count.Add(1)
			longest.Store(max(longest.Load(), int64(time.Since(began))))
		}
	}()
	r.Cleanup(func() {
		close(over)
		c.Close()
		<-talked
		ln.Close()
		<-served
	})
	return count, longest
}
