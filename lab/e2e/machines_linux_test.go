package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestMachines: on machines without a usual interface, the interface of the default route is the link: get, run, serve and doctor work
// over it, and one line says what it is.
func TestMachines(t *testing.T) {
	const cable = `ip link add eth0 type veth peer name cable netns %s && ip netns exec %[1]s ip addr add 10.99.0.1/24 dev cable &&
		ip netns exec %[1]s ip link set cable up && ip link set eth0 up && `
	for _, c := range []struct{ name, setUp, link, odd string }{
		{"a container", cable + "ip addr add 10.99.0.2/24 dev eth0 && ip route add default via 10.99.0.1", "eth0", "a virtual device (veth)"},
		{
			"a host of virtual machines", cable + `ip link add br0 type bridge && ip link set eth0 master br0 && ip addr add 10.99.0.2/24 dev br0 &&
				ip link set br0 up && ip route add default via 10.99.0.1 && ip link add virbr0 type bridge && ip addr add 192.168.122.1/24 dev virbr0 &&
				ip link set virbr0 up`, "br0", "a bridge",
		},
		{"one interface without a carrier, a TUN", "ip link set wifi up && ip route add default dev wifi", "wifi", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, quick(), netlab.NginxOptions{})
			o := r.object(3_000_000)
			setUp := c.setUp
			if strings.Contains(setUp, "%s") {
				setUp = fmt.Sprintf(setUp, r.lab.ServerName())
				r.shell("ip link set wifi down")
			}
			r.shell("ip link set lte down")
			r.shell("ip route flush default; ip -6 route flush default; " + setUp)
			config := filepath.Join(r.lab.Dir, "machine.toml")
			r.write(config, []byte("allow_destinations = [\"10.0.0.0/8\"]\nadmin = \"\"\n"))
			for _, command := range [][]string{
				{"get", "--config", config, "-o", "-", o.URL}, {"run", "--config", config, "curl", "-sS", "--fail", o.URL},
			} {
				got := r.own(command...)
				r.isObject(r.ok(got).body, o)
				if n := strings.Count(got.said, c.odd); c.odd != "" && n != 1 {
					t.Errorf("%s names the link %d times:\n%s", command[0], n, got.said)
				}
			}
			r.configure("")
			r.options.Links = []string{}
			r.serve()
			r.isObject(r.ok(r.curl("--fail", o.URL)).body, o)
			if got := r.own("links", "--config", config); !strings.Contains(string(got.body), c.link) {
				t.Errorf("links: %s%s", got.body, got.said)
			}
			if got := r.own("doctor", "--offline", "--config", config); got.code != 0 && got.code != 1 || strings.Contains(string(got.body), "no link") {
				t.Errorf("doctor: %d, %s%s", got.code, got.body, got.said)
			}
		})
	}
}
