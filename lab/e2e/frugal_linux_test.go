package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// radios is a configuration with the radios of a phone: TUN devices have no radio by default.
const radios = "goal = \"frugal\"\n[link.wifi]\nradio = \"galaxy-s3/wifi\"\n[link.lte]\nradio = \"galaxy-s3/lte\"\n"

// TestFrugal: with the goal frugal not one packet goes over LTE for objects that are not worth waking it; a download over
// slow Wi-Fi wakes it. With the goal fastest, the default, such objects wake it.
func TestFrugal(t *testing.T) {
	t.Parallel()
	r := newRig(t, netlab.Scenario{Name: "frugal", Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 16*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 64*netlab.Mbit, 40*time.Millisecond),
	}}, netlab.NginxOptions{})
	config := r.file() + ".toml"
	r.write(config, []byte(radios))
	r.options.Args = []string{"--config", config}
	r.serve()

	small := []netlab.Object{r.object(20_000), r.object(100_000), r.object(300_000), r.object(500_000)}
	r.silent("forty small objects", r.packets(func() {
		for range 10 {
			for _, o := range small {
				r.download(r.nginx.NamedURL(o), o)
			}
		}
	}), "lte")
	r.silent("tunnels", r.packets(func() {
		r.isObject(r.ok(r.curl("-k", "--fail", r.nginx.SecureURL(small[3]))).body, small[3])
	}), "lte")
	if n := r.packets(func() {
		r.getting("--config", config, "--goal", "fastest", "-o", r.file(), r.nginx.NamedURL(small[3])).ended(0)
	}); n["lte"] == 0 {
		t.Error("with the goal fastest LTE sleeps, too: the comparison shows nothing")
	}

	// schedule.TestFrugal has the joules of both cases. The rate of LTE is not known, so 30 Mbit/s are assumed.
	t.Run("a small object", func(t *testing.T) {
		r := r.on(t)
		f := r.getting("--config", config, "--json", "-o", r.file(), r.nginx.NamedURL(small[3]))
		f.ended(0)
		for _, l := range f.report().Links {
			if l.Name == "lte" && (l.Spared == "" || l.Bytes > 0 || l.RadioJoules != 0) || l.Name == "wifi" && (l.Spared != "" || l.RadioJoules <= 0) {
				t.Errorf("%+v", l)
			}
		}
		if len(f.report().Links) != 2 {
			t.Errorf("the report lacks a link: %s", f.out.String())
		}
	})
	t.Run("a large object", func(t *testing.T) {
		r := r.on(t)
		o := r.object(50_000_000)
		f := r.getting("--config", config, "--json", "-o", r.file(), r.nginx.NamedURL(o))
		f.ended(0)
		used := 0
		for _, l := range f.report().Links {
			if l.Bytes > int64(o.Size)/part && l.RadioJoules > 0 {
				used++
			}
		}
		if used != 2 {
			t.Errorf("%d links were used: %s", used, f.out.String())
		}
	})
	t.Run("status and metrics", func(t *testing.T) {
		r := r.on(t)
		var s struct {
			Links []struct {
				Name        string
				RadioJoules float64 `json:"radio_joules"`
				RadioState  string  `json:"radio_state"`
			}
		}
		out := r.ok(r.client(r.options.Binary, "status", "--json", "--control", r.lab.Dir+"/tributary/control.sock")).body
		if err := json.Unmarshal(out, &s); err != nil {
			t.Fatal(err)
		}
		m := r.metrics()
		for _, l := range s.Links {
			if l.RadioJoules > 0 != (l.Name == "wifi") || l.RadioState != "idle" && l.Name == "lte" || m[`tributary_link_radio_joules_total{link="`+l.Name+`"}`] != l.RadioJoules {
				t.Errorf("%+v: LTE has slept", l)
			}
		}
		if len(s.Links) != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestGoalOfARequest: a field of a request sets the goal of that request alone, and does not reach the origin.
func TestGoalOfARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, netlab.Scenario{Name: "goal", Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 16*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 64*netlab.Mbit, 40*time.Millisecond),
	}}, netlab.NginxOptions{})
	config := r.file() + ".toml"
	r.write(config, []byte(radios))
	r.options.Args = []string{"--config", config}
	r.serve()
	o := r.object(1_000_000)
	with := func(field string) ran { return r.curl("--fail", "-H", "Proxy-Tributary: "+field, r.nginx.NamedURL(o)) }
	get := func(field string) map[string]int64 {
		return r.packets(func() { r.isObject(r.ok(with(field)).body, o) })
	}
	r.silent("goal=frugal", get("goal=frugal"), "lte")
	r.silent("within=60", get("within=60"), "lte")
	if n := get("goal=fastest"); n["lte"] == 0 {
		t.Error("goal=fastest: LTE sleeps")
	}
	if c := with("goal=thirsty"); c.failed == nil || !strings.Contains(c.said, "400") {
		t.Errorf("an unknown goal: %v, %s", c.failed, c.said)
	}
}

// TestCheapest: with the goal cheapest a metered link carries no byte of a download if a percent of speed costs too much,
// and its share otherwise.
func TestCheapest(t *testing.T) {
	t.Parallel()
	r := newRig(t, netlab.Scenario{Name: "cheapest", Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 16*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 64*netlab.Mbit, 40*time.Millisecond),
	}}, netlab.NginxOptions{})
	o := r.object(10_000_000)
	for price, used := range map[string]bool{"10KiB": false, "1MiB": true} { // at 64 + 16 Mbit/s a percent costs 20 kB
		config := r.file() + ".toml"
		r.write(config, []byte("goal = \"cheapest\"\nmetered_per_percent = \""+price+"\"\n[link.lte]\nmetered = true\n"))
		f := r.getting("--config", config, "--json", "-o", r.file(), r.nginx.NamedURL(o))
		f.ended(0)
		for _, l := range f.report().Links {
			if l.Name == "lte" && (used && l.Bytes < int64(o.Size)/part || !used && (l.Bytes > 0 || l.Spared != "costs_money")) {
				t.Errorf("at %s for a percent: %+v", price, l)
			}
		}
		if len(f.report().Links) != 2 {
			t.Errorf("the report lacks a link: %s", f.out.String())
		}
	}
	t.Run("the goal of one request", func(t *testing.T) {
		r := r.on(t)
		config := r.file() + ".toml"
		r.write(config, []byte("metered_per_percent = \"10KiB\"\n[link.lte]\nmetered = true\n"))
		r.options.Args = []string{"--config", config}
		r.serve()
		n := r.packets(func() { r.download(r.nginx.NamedURL(o), o, "-H", "Proxy-Tributary: goal=cheapest") })
		r.silent("at metered_per_percent, without the goal in the configuration", n, "lte")
	})
}
