package e2e

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// publicAddr is an address of the origin that is not in a private network.
var publicAddr = netip.MustParseAddr("203.0.113.1")

// travel returns a laptop with two links, a third one that its configuration disables, a bridge for containers, and a
// VPN; all of them lead to the lab's server. The lab's devices are all tunnels: those that the configuration enables are
// links, and none of them is a VPN that carries everything; see preferBridge.
func travel(t *testing.T, config string) *rig {
	sc := quick()
	sc.Links = append(sc.Links, netlab.Symmetric("eth", 40*netlab.Mbit, 10*time.Millisecond), netlab.Symmetric("wg0", 40*netlab.Mbit, 30*time.Millisecond))
	r := newRig(t, sc, netlab.NginxOptions{})
	r.configure(config + "[link.wifi]\nenabled = true\n[link.lte]\nenabled = true\n[link.eth]\nenabled = false\n")
	r.options.Links = []string{}
	r.preferBridge()
	r.ip("link", "add", "br0", "type", "bridge")
	r.ip("addr", "add", "172.17.0.1/16", "dev", "br0")
	r.ip("link", "set", "br0", "up")
	for _, l := range []string{"eth", "wg0"} { // not preferred by the system
		for _, family := range []string{"-4", "-6"} {
			r.ip(family, "route", "del", "default", "dev", l)
		}
	}
	out, err := r.lab.Server(r.ctx, "ip", "addr", "add", publicAddr.String()+"/32", "dev", "lo").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// preferBridge gives the system a default route over a device that is not a link and leads nowhere. A tunnel that the system's
// own default route leads through would be a VPN that carries everything.
func (r *rig) preferBridge() {
	r.Helper()
	r.ip("link", "add", "br1", "type", "bridge")
	r.ip("link", "set", "br1", "up")
	for _, family := range []string{"-4", "-6"} {
		r.ip(family, "route", "add", "default", "dev", "br1", "metric", "1")
	}
}

// ip runs ip in the client namespace.
func (r *rig) ip(args ...string) {
	r.Helper()
	r.ok(r.client("ip", args...))
}

// packets returns how many packets each link carries while f runs.
func (r *rig) packets(f func()) map[string]int64 {
	r.Helper()
	r.settle()
	n := map[string]int64{}
	for _, l := range r.lab.LinkNames() {
		before, _ := r.carried(l)
		n[l] = -before
	}
	f()
	r.settle()
	for _, l := range r.lab.LinkNames() {
		after, _ := r.carried(l)
		n[l] += after
	}
	return n
}

// silent fails the test if one of these links carried something.
func (r *rig) silent(what string, n map[string]int64, links ...string) {
	r.Helper()
	for _, l := range links {
		if n[l] != 0 {
			r.Errorf("%s: %d packets over %s", what, n[l], l)
		}
	}
}

// far returns the server's address on a link.
func far(l *netlab.Link) string {
	a := l.Addr().As4()
	a[3] = 1
	return netip.AddrFrom4(a).String()
}

// ways are the ways in which programs send requests: through the proxy, through a tunnel, and through redirected
// connections of another user.
var ways = []string{"proxy", "CONNECT", "redirect"}

// ask requests an object from an address; whether that succeeds does not matter.
func (r *rig) ask(way, host string) {
	r.Helper()
	url := "http://" + host + "/10kB"
	switch way {
	case "proxy":
		r.curl("-o", "/dev/null", "-m", "1", url)
	case "CONNECT":
		r.curl("-o", "/dev/null", "-m", "1", "--proxytunnel", url)
	case "redirect":
		r.asNobody("curl", "-sS", "-o", "/dev/null", "-m", "1", url)
	}
}

// TestOtherInterfaces: traffic that belongs to an interface that is not a link does not leave over any link, DNS queries
// included.
func TestOtherInterfaces(t *testing.T) {
	t.Run("R183 R184 R198 split-tunnel VPN, bridge, disabled link", func(t *testing.T) {
		r := travel(t, "")
		o := r.object(5_000_000)
		r.object(10_000)
		r.ip("route", "add", "198.51.100.0/24", "via", far(r.lab.Link("wg0")), "dev", "wg0") // the company's network
		resolver := filepath.Join("/etc/netns", r.lab.ClientName(), "resolv.conf")
		if err := os.WriteFile(resolver, []byte("nameserver "+far(r.lab.Link("wg0"))+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.serve()
		r.ok(r.redirect("nftables", "on"))
		elsewhere := []string{
			far(r.lab.Link("wg0")), "198.51.100.5", "172.17.0.2", far(r.lab.Link("eth")), // of the VPN, the bridge, the disabled link
			r.lab.Link("eth").Addr().String(), r.lab.Link("wifi").Addr().String(), "172.17.0.1", // of this machine
		}
		for _, way := range ways {
			n := r.packets(func() {
				for _, host := range elsewhere {
					r.ask(way, host)
				}
			})
			r.silent(way, n, "wifi", "lte")
			if way != "redirect" { // a program without proxy support goes where it would go without the proxy
				r.silent(way, n, "eth")
			}
		}
		if c := r.asNobody("curl", "-sS", "--fail", "-o", "/dev/null", "-m", "1", "http://"+far(r.lab.Link("wg0"))+"/10kB"); c.failed != nil {
			t.Errorf("a program without the proxy does not reach what is behind the VPN: %s", c.said)
		}
		if c := r.curl("-m", "1", "http://"+far(r.lab.Link("wg0"))+"/10kB"); !strings.Contains(string(c.body), "no_proxy") {
			t.Errorf("the proxy says %.200q", c.body)
		}
		// Names are resolved over the VPN, downloads use the links.
		n := r.packets(func() { r.download(r.nginx.NamedURL(o), o) })
		if n["wifi"] < 1000 || n["lte"] < 500 || n["eth"] != 0 {
			t.Errorf("a download: %v packets", n)
		}
		asked := map[string]bool{}
		for _, q := range r.dns.Queries() {
			asked[q.Link] = true
		}
		if !maps.Equal(asked, map[string]bool{"wg0": true}) {
			t.Errorf("names were asked for over %v", asked)
		}
	})
	t.Run("R198 full-tunnel VPN is followed", func(t *testing.T) {
		r := travel(t, "")
		o := r.object(2_000_000)
		r.fullTunnel()
		r.serve()
		r.ok(r.redirect("nftables", "on"))
		url := strings.Replace(o.URL, netlab.OriginAddr.String(), publicAddr.String(), 1)
		for name, get := range map[string]func(){
			"proxy":    func() { r.download(r.nginx.NamedURL(o), o) },
			"CONNECT":  func() { r.download(r.nginx.NamedURL(o), o, "--proxytunnel") },
			"redirect": func() { r.isObject(r.ok(r.asNobody("curl", "-sS", "--fail", url)).body, o) },
			"get": func() {
				r.ok(r.client(r.options.Binary, "get", "-q", "-o", r.file(), r.nginx.NamedURL(o)))
			},
		} {
			n := r.packets(get)
			r.silent(name, n, "wifi", "lte", "eth")
			if n["wg0"] < 500 {
				t.Errorf("%s: %v packets", name, n)
			}
		}
		for _, q := range r.dns.Queries() {
			if q.Link != "wg0" {
				t.Errorf("%s was asked for over %s", q.Name, q.Link)
			}
		}
		for command, want := range map[string]string{"status --once": "use the VPN wg0", "links": "not used", "doctor --offline": "through wg0"} {
			args := strings.Fields(command)
			if args[0] == "status" {
				args = append(args, "--control", r.lab.Dir+"/tributary/control.sock")
			}
			out := r.client("env", append([]string{"XDG_CONFIG_HOME=" + r.lab.Dir, r.options.Binary}, args...)...)
			if !strings.Contains(string(out.body), want) {
				t.Errorf("%s says %q %s", command, out.body, out.said)
			}
		}
		if !strings.Contains(r.proxy.Said(), "downloads use the VPN") {
			t.Error("serve does not say that it follows the VPN")
		}
	})
	t.Run("R198 full-tunnel VPN comes up and goes while the proxy runs", func(t *testing.T) {
		r := travel(t, "")
		o := r.object(2_000_000)
		url := strings.Replace(o.URL, netlab.OriginAddr.String(), publicAddr.String(), 1)
		r.serve()
		n := r.packets(func() { r.download(url, o) })
		if n["wifi"] == 0 || n["wg0"] != 0 {
			t.Errorf("before: %v packets", n)
		}
		r.fullTunnel()
		n = r.packets(func() { r.curl("--fail", "-o", "/dev/null", url) }) // the request may be too early, but must not use a link
		r.silent("at once", n, "wifi", "lte", "eth")
		r.until("the VPN is followed", func() bool { return strings.Contains(r.proxy.Said(), "downloads use the VPN") })
		n = r.packets(func() { r.download(url, o) })
		r.silent("with the VPN", n, "wifi", "lte", "eth")
		for _, family := range []string{"-4", "-6"} {
			r.ip(family, "rule", "del", "not", "fwmark", "0xca6c", "table", "51820")
			r.ip(family, "rule", "del", "table", "main", "suppress_prefixlength", "0")
		}
		r.until("the links are used again", func() bool { return strings.Count(r.proxy.Said(), "link found\" link=wifi") > 1 })
		n = r.packets(func() { r.download(url, o) })
		if n["wifi"] == 0 || n["wg0"] != 0 {
			t.Errorf("after: %v packets", n)
		}
	})
	t.Run("R184 R198 a route to the VPN appears beneath kept connections", func(t *testing.T) {
		r := travel(t, "")
		o := r.object(10_000)
		r.serve()
		url := strings.Replace(o.URL, netlab.OriginAddr.String(), publicAddr.String(), 1)
		post := []string{"-o", "/dev/null", "-m", "2", "-d", "x", url}
		n := r.packets(func() {
			r.ok(r.curl(post...))
			r.ok(r.curl(post...))
			r.download(url, o)
		})
		if n["wifi"] == 0 || n["wg0"] != 0 {
			t.Errorf("before: %v packets", n)
		}
		r.ip("route", "add", publicAddr.String()+"/32", "via", far(r.lab.Link("wg0")), "dev", "wg0")
		carried := map[string]int64{}
		for _, l := range []string{"wifi", "lte"} {
			_, size := r.carried(l)
			carried[l] = -size
		}
		n = r.packets(func() {
			for _, args := range [][]string{post, post, {"-o", "/dev/null", "-m", "2", url}} {
				if c := r.curl(append([]string{"--fail"}, args...)...); c.failed == nil {
					t.Errorf("%v is answered", args)
				}
			}
		})
		const bare = 60 // bytes of a packet that closes a connection: an IPv4 and a TCP header with timestamps
		for l := range carried {
			if _, size := r.carried(l); carried[l]+size > bare*n[l] {
				t.Errorf("afterwards: %d bytes in %d packets over %s", carried[l]+size, n[l], l)
			}
		}
		n = r.packets(func() { r.curl(post...) }) // once the connections are closed, no packet leaves
		r.silent("later", n, "wifi", "lte", "eth")
	})
	t.Run("full-tunnel VPN, gone around", func(t *testing.T) {
		r := travel(t, "vpn = \"around\"\n")
		o := r.object(5_000_000)
		r.fullTunnel()
		r.serve()
		r.ok(r.redirect("nftables", "on"))
		url := strings.Replace(o.URL, netlab.OriginAddr.String(), publicAddr.String(), 1)
		for name, get := range map[string]func(){
			"proxy":    func() { r.download(url, o) },
			"redirect": func() { r.isObject(r.ok(r.asNobody("curl", "-sS", "--fail", url)).body, o) },
		} {
			_, before := r.carried("wg0")
			n := r.packets(get)
			r.silent(name, n, "eth")
			// The kernel answers late packets for a closed connection with an RST, which is not bound to a link.
			if _, after := r.carried("wg0"); after-before > 40*n["wg0"] {
				t.Errorf("%s: %d bytes in %d packets over wg0", name, after-before, n["wg0"])
			}
			if n["wifi"] < 1000 || n["lte"] < 500 {
				t.Errorf("%s: %v packets", name, n)
			}
		}
		n := r.packets(func() { // the VPN's own traffic stays there
			for _, way := range ways {
				r.ask(way, far(r.lab.Link("wg0")))
			}
		})
		r.silent("the VPN's own network", n, "wifi", "lte", "eth")
		if !strings.Contains(r.proxy.Said(), "downloads bypass the VPN") {
			t.Error("serve does not say that it goes around the VPN")
		}
	})
}

// fullTunnel sets the routes and rules of wg-quick(8) for a VPN that carries everything.
func (r *rig) fullTunnel() {
	r.Helper()
	wg := r.lab.Link("wg0")
	for _, family := range []string{"-4", "-6"} {
		via := far(wg)
		if family == "-6" {
			a := wg.Addr6().As16()
			a[15] = 1
			via = netip.AddrFrom16(a).String()
		}
		r.ip(family, "route", "add", "default", "via", via, "dev", "wg0", "table", "51820")
		r.ip(family, "rule", "add", "not", "fwmark", "0xca6c", "table", "51820")
		r.ip(family, "rule", "add", "table", "main", "suppress_prefixlength", "0")
	}
}
