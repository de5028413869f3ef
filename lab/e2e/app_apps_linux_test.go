package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// bothLinks are Wi-Fi and mobile data that the user has agreed to.
func bothLinks() map[string]string {
	return map[string]string{"wifi": "VALIDATED", "lte": "VALIDATED METERED"}
}

// aria2 downloads an object as the given user over several https connections through CONNECT, and returns how long that
// takes.
func (r *rig) aria2(user string, o netlab.Object) time.Duration {
	r.Helper()
	dir, err := os.MkdirTemp(r.lab.Dir, "aria2-")
	if err != nil {
		r.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		r.Fatal(err)
	}
	began := time.Now()
	r.ok(r.asUser(user, "aria2c", "--no-conf", "--quiet", "--async-dns=false", "--file-allocation=none", "--dir="+dir, "--out=o",
		"--check-certificate=false", "--min-split-size=1M", "--split=8", "--max-connection-per-server=8", "--all-proxy=http://"+javaProxy,
		r.nginx.SecureURL(o)))
	took := time.Since(began)
	r.isObject(r.read(filepath.Join(dir, "o")), o)
	return took
}

// TestJavaHostApps: other apps use mobile data through the proxy only if the user agreed. A parallel https client that
// uses CONNECT then gets both links. A client that may not use mobile data sends no packet over it, by https or plain
// http, and does not make the program ask for it. Its rate is measured by make android-test.
func TestJavaHostApps(t *testing.T) {
	need(t, "aria2c", "aria2")
	const chosen, other = anotherApp, "10201"
	for name, row := range map[string]struct {
		apps, user string
		both       bool
	}{
		"all may":      {"ALL", other, true},
		"a chosen one": {"CHOSEN:" + chosen, chosen, true},
		"not chosen":   {"CHOSEN:" + chosen, other, false},
		"nobody may":   {"NONE", chosen, false},
	} {
		t.Run(name, func(t *testing.T) {
			sc := equal()
			r := newRig(t, sc, netlab.NginxOptions{})
			r.android()
			size := netlab.Bytes(5_000_000)
			switch {
			case row.both && matrix():
				size = 50_000_000
			case row.both:
				size = 20_000_000
			}
			o := r.object(size)
			a := &javaApp{Traits: bothLinks(), Props: []string{"apps=" + row.apps}, URL: "-", File: "-"}
			before, _ := r.carried("lte")
			r.whileJava(a, func() {
				var took time.Duration
				got := r.over(func() { took = r.aria2(row.user, o) })
				if row.both {
					// The share of what both links can carry in that time; their rates are those of the scenario, which
					// count packets with all headers.
					most := float64(sc.Links[0].Down.Rate+sc.Links[1].Down.Rate) / 8 * took.Seconds()
					share := float64(got["wifi"]+got["lte"]) / most
					t.Logf("%v: wifi %d, lte %d bytes, %.1f %% of both links, %.1f %% as content", took, got["wifi"], got["lte"], 100*share, 100*float64(o.Size)/most)
					if got["wifi"] < int64(o.Size)/4 || got["lte"] < int64(o.Size)/4 || matrix() && share < 0.9 {
						t.Errorf("it gets %.1f %% of both links", 100*share)
					}
					return
				}
				r.isObject(r.ok(r.asUser(row.user, "curl", "-sS", "--fail", "-x", "http://"+javaProxy, o.URL)).body, o)
				if packets, size := r.carried("lte"); packets != before {
					t.Errorf("mobile data carried %d packets; %d bytes in all", packets-before, size)
				}
			})
			if wanted := strings.Contains(a.said.String(), "wanted: true"); wanted != row.both {
				t.Errorf("mobile data is wanted: %v\n%s", wanted, a.said.String())
			}
		})
	}
}

// pairRelay starts a relay next to the origin, and returns a link to pair with it.
func (r *rig) pairRelay() (link string) {
	r.Helper()
	addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, relayPort)
	if out, err := r.lab.Server(r.ctx, "ip", "addr", "add", relayedAddr+"/32", "dev", "lo").CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	state := "XDG_STATE_HOME=" + filepath.Join(r.lab.Dir, "relay")
	if err := os.Mkdir(filepath.Join(r.lab.Dir, "relay"), 0o700); err != nil {
		r.Fatal(err)
	}
	r.waitForOrigin(relayPort, r.background("env", state, r.options.Binary, "relay", "serve", "--listen", addr, "--allow-destinations", relayedAddr))
	pair := r.lab.Server(r.ctx, r.options.Binary, "relay", "pair", addr)
	pair.Env = append(os.Environ(), state)
	out, err := pair.Output()
	if err != nil {
		r.Fatal(err)
	}
	link, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return link
}

// TestJavaHostRelay: the app pairs with a relay by its link, and one https connection of another app through CONNECT then
// uses lanes over both links. Without consent, no packet leaves over mobile data, not even for a lane.
func TestJavaHostRelay(t *testing.T) {
	for name, row := range map[string]struct {
		apps, lte string
		both      bool
	}{
		"both links":                  {"ALL", "VALIDATED METERED", true},
		"no app may use mobile data":  {"NONE", "VALIDATED METERED", false},
		"roaming without its consent": {"ALL", "VALIDATED METERED ROAMING", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, equal(), netlab.NginxOptions{})
			r.android()
			link := r.pairRelay()
			cert, err := r.lab.Certificate()
			if err != nil {
				t.Fatal(err)
			}
			o := r.object(20_000_000)
			before, _ := r.carried("lte")
			a := &javaApp{
				Traits: map[string]string{"wifi": "VALIDATED", "lte": row.lte}, Props: []string{"apps=" + row.apps, "link=" + link}, URL: "-", File: "-",
			}
			r.whileJava(a, func() {
				addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, relayPort)
				r.until("it is paired", func() bool { return strings.Contains(a.said.String(), "answered: 7 "+addr+"\n") })
				lanes := "lanes wifi"
				if row.both {
					lanes = "lanes lte wifi"
				}
				get := func() {
					r.isObject(r.ok(r.client("curl", "-sS", "--fail", "-x", "http://"+javaProxy, "--cacert", cert.CA, "--connect-to",
						"::"+relayedAddr+":", r.nginx.SecureURL(o))).body, o)
				}
				get() // the app learns of lanes while something runs
				r.until("the app sees the lanes", func() bool { return strings.Contains(a.said.String(), lanes+"\n") })
				for link, n := range r.over(get) {
					if share := float64(n) / float64(o.Size); row.both && share < 0.2 {
						t.Errorf("%s carried %d bytes of %d", link, n, o.Size)
					}
				}
			})
			if packets, _ := r.carried("lte"); !row.both && packets != before {
				t.Errorf("mobile data carried %d packets", packets-before)
			}
		})
	}
}
