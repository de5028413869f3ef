package systemtest

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// long is the size of an object that takes both links a second and a half at the rate slow.
const (
	long = 6 << 20
	slow = 2 << 20
)

// TestDeadLinks starts with one dead link: the download uses the other, including for the first request.
func TestDeadLinks(t *testing.T) {
	deaths := []struct {
		name string
		kill func(p *path)
	}{
		{"connections hang", (*path).silence},
		{"connections are refused", func(p *path) { p.set(func(p *path) { p.refused = true }) }},
		{"connections are reset", func(p *path) { p.set(func(p *path) { p.reset = true }) }},
	}
	for _, d := range deaths {
		for _, name := range []string{"wifi", "lte"} {
			for _, codings := range []string{"", "gzip"} {
				t.Run(fmt.Sprintf("%s on %s, codings %q", d.name, name, codings), func(t *testing.T) {
					t.Parallel()
					s := New(t, Object{Size: mid}, RateLimit(paced))
					r := newRig(t, s, settings(), "wifi", "lte")
					dead := r.wifi
					if name == "lte" {
						dead = r.lte
					}
					d.kill(dead)
					h := http.Header{}
					if codings != "" {
						h.Set("Accept-Encoding", codings)
					}
					whole(t, r.get(h), s.Object())
					if n := r.carried(name); n > 0 {
						t.Errorf("the dead link carried %d bytes", n)
					}
					whole(t, r.get(h), s.Object()) // what was remembered does not harm the next download
				})
			}
		}
		t.Run(d.name+" on both", func(t *testing.T) {
			t.Parallel()
			s := New(t, Object{Size: mid})
			cfg := settings()
			cfg.WaitForLink = 500 * time.Millisecond
			r := newRig(t, s, cfg, "wifi", "lte")
			d.kill(r.wifi)
			d.kill(r.lte)
			if got := r.get(nil); got.err != nil || got.status < 502 || got.status > 504 {
				t.Errorf("%v, want 502 to 504", got)
			}
		})
	}
	t.Run("no link at all", func(t *testing.T) {
		s := New(t, Object{Size: mid})
		r := newRig(t, s, settings())
		if got := r.get(nil); got.status != http.StatusServiceUnavailable {
			t.Errorf("%v, want 503", got)
		}
	})
}

// TestConnectionLimit lets each node accept only one connection at any time, and close it after some answers.
func TestConnectionLimit(t *testing.T) {
	for _, codings := range []string{"", "gzip"} {
		for _, breaks := range []bool{false, true} {
			t.Run(fmt.Sprintf("R120 codings %q, breaks under pipelining: %v", codings, breaks), func(t *testing.T) {
				t.Parallel()
				faults := []Fault{RateLimit(paced), OnSeq(4, ConnectionClose())}
				if breaks {
					faults = append(faults, OnPipelined(ClosesEarly()))
				}
				s := New(t, Object{Size: mid}, faults...)
				r := newRig(t, s, settings(), "wifi", "lte")
				for _, p := range []*path{r.wifi, r.lte} {
					p.set(func(p *path) { p.most = 1 })
				}
				h := http.Header{}
				if codings != "" {
					h.Set("Accept-Encoding", codings)
				}
				whole(t, r.get(h), s.Object())
				if r.carried("lte") == 0 {
					t.Error("the second link carried nothing")
				}
			})
		}
	}
}

// TestLinksInMidTransfer lets links fail and return while a download is running.
func TestLinksInMidTransfer(t *testing.T) {
	scenes := []struct {
		name  string
		links []string
		play  func(t *testing.T, r *rig)
	}{
		{"a link falls silent and speaks again", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			r.lte.silence()
			until(t, "lte is suspected", limit, func() bool { return r.suspected("lte") })
			before := r.carried("lte")
			r.lte.speak()
			until(t, "lte carries bytes again", limit, func() bool { return r.carried("lte") > before })
		}},
		{"the first link falls silent for good", []string{"wifi", "lte"}, func(_ *testing.T, r *rig) { r.wifi.silence() }},
		{"both fall silent and one speaks again", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			r.wifi.silence()
			r.lte.silence()
			until(t, "a link is suspected", limit, func() bool { return r.suspected("lte") || r.suspected("wifi") })
			before := r.carried("lte")
			r.lte.speak()
			until(t, "lte carries bytes again", limit, func() bool { return r.carried("lte") > before })
		}},
		{"a link goes away", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			r.source.Set(named("wifi")...)
			until(t, "lte is down", limit, func() bool { return r.state("lte") == "down" })
		}},
		{"the first link goes away", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			r.source.Set(named("lte")...)
			until(t, "wifi is down", limit, func() bool { return r.state("wifi") == "down" })
		}},
		{"a link goes away and returns", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			r.source.Set(named("wifi")...)
			until(t, "lte is down", limit, func() bool { return r.state("lte") == "down" })
			before := r.carried("lte")
			r.source.Set(named("wifi", "lte")...)
			until(t, "lte carries bytes again", limit, func() bool { return r.carried("lte") > before })
		}},
		{"all links go away and return", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			r.source.Set()
			until(t, "both are down", limit, func() bool { return r.state("lte") == "down" && r.state("wifi") == "down" })
			wifi, lte := r.carried("wifi"), r.carried("lte")
			r.source.Set(named("wifi", "lte")...)
			until(t, "both carry bytes again", limit, func() bool {
				return r.carried("wifi") > wifi && r.carried("lte") > lte
			})
		}},
		{"a link appears", []string{"wifi"}, func(t *testing.T, r *rig) {
			r.source.Set(named("wifi", "lte")...)
			until(t, "lte carries bytes", limit, func() bool { return r.carried("lte") > 0 })
		}},
		{"a link appears and the first goes away", []string{"wifi"}, func(_ *testing.T, r *rig) { r.source.Set(named("lte")...) }},
		{"R106 every connection is reset, again and again", []string{"wifi", "lte"}, func(t *testing.T, r *rig) {
			for range 5 {
				wifi, lte := r.carried("wifi"), r.carried("lte")
				r.wifi.resetAll()
				r.lte.resetAll()
				until(t, "bytes come again", limit, func() bool {
					return r.carried("wifi")+r.carried("lte") > wifi+lte+100<<10
				})
			}
		}},
		{"the origin restarts", []string{"wifi", "lte"}, func(_ *testing.T, r *rig) { r.server.CloseConns() }},
		{"a link refuses new connections", []string{"wifi", "lte"}, func(_ *testing.T, r *rig) {
			r.lte.set(func(p *path) { p.refused = true })
			r.lte.resetAll()
		}},
	}
	for _, sc := range scenes {
		for _, codings := range []string{"", "gzip"} {
			t.Run(fmt.Sprintf("%s, codings %q", sc.name, codings), func(t *testing.T) {
				t.Parallel()
				s := New(t, Object{Size: long}, RateLimit(slow/4)) // slower than the client, however busy the machine is
				cfg := settings()
				cfg.TransferWindow = 1 << 20 // leaves bytes to request for a link that appears late
				r := newRig(t, s, cfg, sc.links...)
				h := http.Header{}
				if codings != "" {
					h.Set("Accept-Encoding", codings)
				}
				d := r.open(h)
				stop := d.sip()
				for _, name := range sc.links {
					until(t, name+" carries bytes", limit, func() bool { return r.carried(name) > 0 })
				}
				sc.play(t, r)
				stop()
				d.rest(s.Object())
			})
		}
	}
}

// TestStalledAnswers lets the answers over one link stop and continue while the link itself works.
func TestStalledAnswers(t *testing.T) {
	on := make(chan struct{})
	s := New(t, Object{Size: long}, RateLimit(slow), OnNode(1, StallAfter(100_000, on)))
	r := newRig(t, s, settings(), "wifi", "lte")
	d := r.open(nil)
	d.read(256 << 10)
	until(t, "lte is suspected", limit, func() bool { return r.suspected("lte") })
	before := r.carried("lte")
	close(on)
	until(t, "lte carries bytes again", limit, func() bool { return r.carried("lte") > before })
	d.rest(s.Object())
}

// TestLinksGoForLong removes all links for longer than a transfer waits: the client sees that the answer is incomplete.
func TestLinksGoForLong(t *testing.T) {
	s := New(t, Object{Size: long}, RateLimit(slow))
	cfg := settings()
	cfg.WaitForLink = 300 * time.Millisecond
	r := newRig(t, s, cfg, "wifi", "lte")
	d := r.open(nil)
	d.read(512 << 10)
	r.source.Set()
	_, err := io.Copy(&d.got, d.resp.Body)
	if err == nil || int64(d.got.Len()) >= s.Object().Size {
		t.Errorf("%d bytes, error %v", d.got.Len(), err)
	}
	if w := wrong(s.Object(), d.got.Bytes(), 0); w != "" {
		t.Error(w)
	}
	released(t, r)
}
