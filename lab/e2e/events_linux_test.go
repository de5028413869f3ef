package e2e

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// slack is the factor by which the times that the project promises are multiplied here, since test machines are shared.
const slack = 3

// The tests of this file mostly wait for slow links, so they run side by side.

func TestLinkDiesAndComesBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scenario string
		size     netlab.Bytes  // on a busy machine links come back late
		pause    time.Duration // longest at the client, as promised
		flows    time.Duration // from a link's return to the client's next byte, as promised
		carries  time.Duration // from a link's return to its next byte, as promised
	}{
		{"equal-blackhole", 40e6, time.Second, time.Second, 350 * time.Millisecond},
		{"equal-down", 40e6, time.Second, time.Second, 350 * time.Millisecond},
		{"both-gone", 40e6, (5 + 1) * time.Second, time.Second, 350 * time.Millisecond},
		{"both-dark", 40e6, (5 + 1) * time.Second, time.Second, 350 * time.Millisecond},
		{"flapping", 120e6, time.Second, time.Second, 350 * time.Millisecond},
		{"flapping-down", 120e6, time.Second, time.Second, 350 * time.Millisecond},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			sc := shipped(t, tt.scenario)
			sc.Events = sc.Events[:min(8, len(sc.Events))]
			r := start(t, sc)
			p := r.play(tt.size)
			if pause, began := p.LongestPause(); pause > slack*tt.pause {
				t.Errorf("a pause of %s from %s", pause, began)
			}
			for _, e := range p.Events {
				if !e.Returns() {
					continue
				}
				if e.ClientAfter < 0 || e.ClientAfter > slack*tt.flows {
					t.Errorf("%s %s: the client's next byte came after %s", e.Link, e.What, e.ClientAfter)
				}
				if e.LinkAfter < 0 || e.LinkAfter > slack*tt.carries {
					t.Errorf("%s %s at %s: the link's next byte came after %s", e.Link, e.What, e.Began, e.LinkAfter)
				}
			}
		})
	}
}

func TestAddressesGoAndComeBack(t *testing.T) {
	t.Parallel()
	const second = time.Second
	r := start(t, equal(
		event(second/2, "wifi", netlab.EventRemoveAddrs), event(3*second/2, "wifi", netlab.EventRestoreAddrs),
		event(5*second/2, "lte", netlab.EventRemoveAddrs), event(7*second/2, "lte", netlab.EventRestoreAddrs),
	))
	p := r.play(40_000_000)
	if pause, began := p.LongestPause(); pause > slack*time.Second {
		t.Errorf("a pause of %s from %s", pause, began)
	}
	for _, e := range p.Events {
		if e.Returns() && e.LinkAfter < 0 {
			t.Errorf("%s %s: the link carried nothing any more", e.Link, e.What)
		}
	}
}

func TestLinkAppears(t *testing.T) {
	t.Parallel()
	for _, bring := range []struct{ take, back string }{
		{netlab.EventDown, netlab.EventUp},
		{netlab.EventRemoveAddrs, netlab.EventRestoreAddrs},
	} {
		t.Run(bring.back, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, equal(event(time.Second, "lte", bring.back)), netlab.NginxOptions{})
			if err := r.lab.Apply(event(0, "lte", bring.take)); err != nil {
				t.Fatal(err)
			}
			r.serve()
			if share := shares(r.play(10_000_000)); share["lte"] < 0.1 {
				t.Errorf("the new link brought %.0f %%", 100*share["lte"])
			}
		})
	}
}

func TestConnectionsBreak(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*netlab.Nginx) error{
		"reset":         (*netlab.Nginx).ResetConnections,
		"worker killed": (*netlab.Nginx).KillWorkers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, equal())
			o := r.object(10_000_000)
			type result struct {
				d   netlab.Download
				err error
			}
			downloaded := make(chan result, 1)
			go func() {
				d, err := r.lab.Download(r.ctx, netlab.ProxyAddr, o.URL)
				downloaded <- result{d, err}
			}()
			for _, upTo := range []int64{1_000_000, 4_000_000, 7_000_000} {
				r.until("bytes flow over both links", func() bool {
					m := r.metrics()
					return m.Received("wifi")+m.Received("lte") > upTo && m.Received("lte") > 0
				})
				if err := cut(r.nginx); err != nil {
					t.Fatal(err)
				}
			}
			res := <-downloaded
			if res.err != nil || !res.d.Is(o) {
				t.Fatalf("%d of %d bytes: %v", res.d.Bytes, o.Size, res.err)
			}
			m := r.metrics()
			if m[`tributary_attempts_total{link="wifi",reason="reset"}`]+m[`tributary_attempts_total{link="lte",reason="reset"}`]+
				m[`tributary_attempts_total{link="wifi",reason="short"}`]+m[`tributary_attempts_total{link="lte",reason="short"}`] == 0 {
				t.Error("no attempt was cut: the test shows nothing")
			}
			if pause, began := res.d.LongestPause(); pause > slack*time.Second {
				t.Errorf("a pause of %s from %s", pause, began)
			}
		})
	}
}
