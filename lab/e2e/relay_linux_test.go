package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	relayPort = 8450
	socksAddr = "127.0.0.1:11080"
	// relayedAddr is another address of the origin, since tunnels to private networks do not go through the relay.
	relayedAddr  = "45.76.1.7"
	relayMetrics = "127.0.0.1:9092"
)

// relayed starts a relay at the origin's address, pairs with it, and runs the program with it. ended is closed when the
// relay has ended.
func (r *rig) relayed() (pid int, ended <-chan struct{}) {
	r.Helper()
	path := r.options.Binary
	addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, relayPort)
	if out, err := r.lab.Server(r.ctx, "ip", "addr", "add", relayedAddr+"/32", "dev", "lo").CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	state := filepath.Join(r.lab.Dir, "relay")
	if err := os.Mkdir(state, 0o700); err != nil {
		r.Fatal(err)
	}
	number := filepath.Join(state, "pid")
	ended = r.background("env", "XDG_STATE_HOME="+state, "sh", "-c", `echo $$ > "$0"; exec "$@"`, number, path, "relay", "serve", "--listen", addr,
		"--allow-destinations", relayedAddr, "--log-level", "debug", "--metrics", relayMetrics)
	r.waitForOrigin(relayPort, ended)
	said, err := os.ReadFile(number)
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(string(said)))
	}
	if err != nil {
		r.Fatal(err)
	}
	pair := r.lab.Server(r.ctx, path, "relay", "pair", addr)
	pair.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	link, err := pair.Output()
	if err != nil {
		r.Fatal(err)
	}
	own := filepath.Join(r.lab.Dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		r.Fatal(err)
	}
	r.Setenv("XDG_STATE_HOME", own)
	join := r.lab.Client(r.ctx, path, "relay", "join", "-")
	join.Stdin = strings.NewReader(string(link))
	if out, err := join.CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	config := filepath.Join(r.lab.Dir, "relay.toml")
	r.write(config, fmt.Appendf(nil, "socks = %q\n[relay]\naddress = %q\nmode = \"all\"\n", socksAddr, addr))
	r.options.Args = []string{"--config", config}
	r.serve()
	for _, name := range r.lab.LinkNames() {
		r.until("there is a lane over "+name, func() bool {
			return strings.Contains(r.proxy.Said(), `"relay lane made" link=`+name)
		})
	}
	token := strings.TrimSpace(string(link))
	token = token[strings.LastIndex(token, ".")+1:]
	b, err := os.ReadFile(filepath.Join(own, "tributary", "relay.json"))
	if err != nil {
		r.Fatal(err)
	}
	var kept struct {
		Relays map[string]struct{ Key string }
	}
	if err := json.Unmarshal(b, &kept); err != nil || len(kept.Relays[addr].Key) < 40 {
		r.Fatalf("%v: %d bytes", err, len(b))
	}
	r.Cleanup(func() {
		if said := r.proxy.Said(); strings.Contains(said, token) || strings.Contains(said, kept.Relays[addr].Key) {
			r.Error("the log has a secret")
		}
	})
	return pid, ended
}

// TestRelay: one tunnel's bytes arrive over both links, and a link's death or return does not disturb the tunnel.
func TestRelay(t *testing.T) {
	r := newRig(t, equal(), netlab.NginxOptions{})
	relay, ended := r.relayed()
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	public := []string{"--cacert", cert.CA, "--connect-to", "::" + relayedAddr + ":"}
	before := map[string]int64{}
	begin := func() {
		r.settle()
		for _, name := range r.lab.LinkNames() {
			_, before[name] = r.carried(name)
		}
	}
	since := func(name string) int64 {
		_, n := r.carried(name)
		return n - before[name]
	}
	t.Run("both links", func(t *testing.T) {
		r := r.on(t)
		o := r.object(10_000_000)
		for _, via := range []string{proxyURL, "socks5h://" + socksAddr} {
			begin()
			args := append([]string{"-sS", "--fail", "-x", via, r.nginx.SecureURL(o)}, public...)
			r.isObject(r.ok(r.client("curl", args...)).body, o)
			for _, name := range r.lab.LinkNames() {
				if n := since(name); n < int64(o.Size)/5 {
					t.Errorf("%s: %s carried %d bytes", via, name, n)
				}
			}
		}
		for _, name := range r.lab.LinkNames() {
			r.until("the bytes of "+name+"'s lanes are counted", func() bool {
				m := r.metrics()
				lanes, link := m[`tributary_lane_bytes_total{link="`+name+`"}`], m[`tributary_link_undivided_bytes_total{link="`+name+`"}`]
				return lanes >= float64(since(name)) && link >= lanes
			})
		}
	})
	t.Run("upload", func(t *testing.T) {
		r := r.on(t)
		o := r.object(10_000_000)
		file := r.file()
		r.write(file, r.ok(r.client("curl", "-sS", "--fail", o.URL)).body)
		e := &echo{}
		to := r.serveHTTPAt(relayedAddr+":8081", e)
		begin()
		r.isObject(r.ok(r.curl("--fail", "--upload-file", file, to+"/")).body, o)
		for _, name := range r.lab.LinkNames() {
			if n := since(name); n < int64(o.Size)/5 {
				t.Errorf("%s carried %d bytes of an upload by plain http", name, n)
			}
		}
	})
	t.Run("a link dies and returns", func(t *testing.T) {
		r := r.on(t)
		begin()
		o := r.object(20_000_000)
		done := make(chan ran, 1)
		go func() {
			args := append([]string{"-sS", "--fail", "-x", proxyURL, r.nginx.SecureURL(o)}, public...)
			body, err := r.lab.Client(r.ctx, "curl", args...).Output()
			done <- ran{body: body, failed: err}
		}()
		wifi, size := r.lab.Link("wifi"), int64(0)
		r.until("bytes flow", func() bool { return since("wifi") > 2_000_000 })
		if err := wifi.Blackhole(true); err != nil {
			t.Fatal(err)
		}
		lte := since("lte")
		r.until("they flow over the other link", func() bool { return since("lte") > lte+2_000_000 })
		if err := wifi.Blackhole(false); err != nil {
			t.Fatal(err)
		}
		size = since("wifi")
		r.until("the link carries bytes again", func() bool { return since("wifi") > size+500_000 })
		r.isObject(r.ok(<-done).body, o)
	})
	t.Run("all links go down and return", func(t *testing.T) {
		r := r.on(t)
		for _, name := range r.lab.LinkNames() {
			if err := r.lab.Link(name).Down(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range r.lab.LinkNames() {
			if err := r.lab.Link(name).Up(); err != nil {
				t.Fatal(err)
			}
		}
		o := r.object(100_000)
		r.until("tunnels work again", func() bool {
			return r.curl(append([]string{"--fail", "-o", "/dev/null", r.nginx.SecureURL(o)}, public...)...).failed == nil
		})
	})
	t.Run("the relay drains", func(t *testing.T) {
		r := r.on(t)
		shows := func(name, value string) bool {
			text, _ := r.lab.Server(r.ctx, "curl", "-sS", "http://"+relayMetrics+"/metrics").Output()
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "tributary_relay_"+name) && strings.HasSuffix(line, " "+value+"\n") {
					return true
				}
			}
			return false
		}
		o := r.object(2_000_000)
		download := func(args ...string) *exec.Cmd {
			return r.lab.Client(r.ctx, "curl", append(append([]string{"-sS", "--fail", "-x", proxyURL, r.nginx.SecureURL(o)}, public...), args...)...)
		}
		done := make(chan ran, 1)
		r.until("there are two lanes", func() bool { return shows("lanes{", "2") && shows("flows{", "0") })
		go func() {
			body, err := download("--limit-rate", "500k").Output()
			done <- ran{body: body, failed: err}
		}()
		r.until("its tunnel is open", func() bool { return shows("flows{", "1") })
		for _, s := range []unix.Signal{unix.SIGHUP, unix.SIGTERM} {
			if err := unix.Kill(relay, s); err != nil {
				t.Fatal(err)
			}
		}
		r.until("it drains", func() bool { return shows("draining", "1") })
		body, err := download().Output() // directly
		r.isObject(r.ok(ran{body: body, failed: err}).body, o)
		if !shows("refusals_total{", "1") {
			t.Error("the relay has refused no tunnel")
		}
		r.isObject(r.ok(<-done).body, o)
		select {
		case <-ended:
		case <-r.ctx.Done():
			t.Error("the relay does not end")
		}
	})
}
