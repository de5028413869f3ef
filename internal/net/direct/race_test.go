package direct_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// course is the behaviour of links when they are dialed, in virtual time.
type course struct {
	t     *testing.T
	begin time.Time
	after map[string]time.Duration // until the handshake completes; negative = fails then; 0 = never ends by itself
	fail  map[string]error

	mu     sync.Mutex
	log    []string
	open   map[string]int
	served sync.WaitGroup
}

// raced is a connection that answers and records each request.
type raced struct {
	net.Conn
	c    *course
	name string
	once sync.Once
}

func (r *raced) Close() error {
	r.once.Do(func() { r.c.note("close", r.name); r.c.mu.Lock(); r.c.open[r.name]--; r.c.mu.Unlock() })
	return r.Conn.Close()
}

func (c *course) note(what, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%v %s %s", time.Since(c.begin), what, name))
}

func (c *course) dial(ctx context.Context, l link.Link, _, _ string) (net.Conn, error) {
	c.note("dial", l.Name)
	after := c.after[l.Name]
	if after == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(max(after, -after)) // virtual; a handshake that can no longer be stopped
	if after < 0 {
		return nil, c.fail[l.Name]
	}
	near, far := net.Pipe()
	c.mu.Lock()
	c.open[l.Name]++
	c.mu.Unlock()
	c.served.Go(func() {
		defer far.Close()
		br := bufio.NewReader(far)
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			b, _ := io.ReadAll(r.Body)
			c.note("request", l.Name)
			fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
		}
	})
	return &raced{Conn: near, c: c, name: l.Name}, nil
}

// passThrough returns a pass-through client over the links.
func (c *course) passThrough(links ...link.Link) *direct.PassThrough {
	links = link.DialFunc(c.dial).Over(links...)
	return direct.NewPassThrough(func() []link.Link { return links }, nil, time.Minute)
}

func TestRace(t *testing.T) {
	const ms = time.Millisecond
	wifi, lte, eth := link.Link{Name: "wifi"}, link.Link{Name: "lte", Terms: policy.Terms{Metered: true}}, link.Link{Name: "eth"}
	errRefused := errors.New("refused")
	for _, tt := range []struct {
		name  string
		links []link.Link
		after map[string]time.Duration
		fail  map[string]error
		want  string // the link, or why it fails
		log   string
	}{
		{
			"R146 the best link is quick: no other is dialed",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": 200 * ms, "eth": ms},
			nil, "wifi", "0s dial wifi",
		},
		{
			"R146 the best link drops SYNs: the next joins after 250 ms",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"eth": 20 * ms},
			nil, "eth", "0s dial wifi, 250ms dial eth",
		},
		{
			"R146 the loser is closed before a byte",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": 400 * ms, "eth": 20 * ms},
			nil, "eth", "0s dial wifi, 250ms dial eth, 400ms close wifi",
		},
		{
			"R146 a metered link joins last, though it is the best",
			[]link.Link{lte, wifi, eth},
			map[string]time.Duration{"lte": ms},
			nil, "lte", "0s dial wifi, 250ms dial eth, 500ms dial lte",
		},
		{
			"R146 a link that fails is followed at once",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": -7 * ms, "eth": ms},
			map[string]error{"wifi": errRefused},
			"eth", "0s dial wifi, 7ms dial eth",
		},
		{
			"R146 all fail: the best link's error",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": -300 * ms, "eth": -ms},
			map[string]error{"wifi": errRefused, "eth": io.EOF},
			"dial over wifi: refused", "0s dial wifi, 250ms dial eth",
		},
		{
			"R183 a denied address is tried over no other link",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": -ms, "eth": ms},
			map[string]error{"wifi": link.ErrDenied},
			"dial over wifi: " + link.ErrDenied.Error(), "0s dial wifi",
		},
		{
			"R184 an address of another link's network: over that one",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": -ms, "eth": ms},
			map[string]error{"wifi": link.ErrOffLink},
			"eth", "0s dial wifi, 1ms dial eth",
		},
		{
			"R184 the link that leads there fails",
			[]link.Link{wifi, eth},
			map[string]time.Duration{"wifi": -ms, "eth": -ms},
			map[string]error{"wifi": link.ErrOffLink, "eth": errRefused},
			"dial over eth: refused", "0s dial wifi, 1ms dial eth",
		},
		{"no link", nil, nil, nil, engine.ErrNoLink.Error(), ""},
	} {
		for _, way := range []string{"tunnel", "request"} {
			t.Run(tt.name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &course{t: t, begin: time.Now(), after: tt.after, fail: tt.fail, open: map[string]int{}}
					p := c.passThrough(tt.links...)
					defer p.Close()
					var got string
					want := tt.log
					if way == "tunnel" {
						d, err := p.DialTunnel(t.Context(), "o.test:443")
						nc, l := d.Conn, d.Link
						if got = l.Name; err != nil {
							got = err.Error()
						} else {
							defer nc.Close()
						}
					} else {
						r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://o.test/", strings.NewReader("content"))
						resp, l, err := p.Do(r)
						if got = l.Name; err != nil {
							got = err.Error()
						} else {
							b, err := io.ReadAll(resp.Body)
							resp.Body.Close()
							if err != nil || string(b) != "content" {
								t.Errorf("%q, %v", b, err)
							}
						}
					}
					if got != tt.want {
						t.Errorf("got %s, want %s", got, tt.want)
					}
					c.mu.Lock()
					log := strings.Join(slices.DeleteFunc(slices.Clone(c.log), func(s string) bool {
						return way == "request" && strings.HasSuffix(s, "request "+tt.want)
					}), ", ")
					c.mu.Unlock()
					if log != want {
						t.Errorf("log %s\nwant %s", log, want)
					}
				})
			})
		}
	}
}

func TestRaceRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wifi, eth := link.Link{Name: "wifi"}, link.Link{Name: "eth"}
		c := &course{t: t, begin: time.Now(), after: map[string]time.Duration{"eth": 10 * time.Millisecond}, open: map[string]int{}}
		p := c.passThrough(wifi, eth)
		defer p.Close()
		took := func() time.Duration {
			t.Helper()
			from := time.Now()
			nc, err := p.DialTunnel(t.Context(), "o.test:443")
			if err != nil {
				t.Fatal(err)
			}
			nc.Close()
			return time.Since(from)
		}
		for i, want := range []time.Duration{260, 10, 10} {
			if d := took(); d != want*time.Millisecond {
				t.Errorf("R146 connection %d after %v", i, d)
			}
		}
		time.Sleep(10 * time.Second) // virtual
		if d := took(); d != 260*time.Millisecond {
			t.Errorf("R146 the best link is not asked first again: %v", d)
		}
	})
}

// A kept connection is used without a race; one that the origin has closed leads to a race.
func TestRaceKeptConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &course{t: t, begin: time.Now(), after: map[string]time.Duration{"wifi": time.Millisecond}, open: map[string]int{}}
		p := c.passThrough(link.Link{Name: "wifi"}, link.Link{Name: "eth"})
		get := func() {
			t.Helper()
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://o.test/", nil)
			resp, _, err := p.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			synctest.Wait()
		}
		get()
		get()
		if got := strings.Join(c.log, ", "); got != "0s dial wifi, 1ms request wifi, 1ms request wifi" {
			t.Errorf("log %s", got)
		}
		p.Close()
		synctest.Wait()
		get()
		if n := c.open["wifi"]; n != 1 {
			t.Errorf("%d connections", n)
		}
		p.Close()
	})
}

// A failure to bind is reported as such.
func TestRaceUnbound(t *testing.T) {
	over := link.DialFunc(func(_ context.Context, l link.Link, _, _ string) (net.Conn, error) {
		return nil, &link.DialError{Link: l.Name, Op: link.OpBind, Err: &link.BindError{Link: l.Name, Err: io.EOF}}
	}).Over(links...)
	p := direct.NewPassThrough(func() []link.Link { return over }, nil, time.Minute)
	if _, err := p.DialTunnel(t.Context(), "o.test:443"); outcome(t, err) != fault.Unbound {
		t.Errorf("R199 %v", err)
	}
}
