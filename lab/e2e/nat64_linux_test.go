package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestNAT64: an IPv6-only mobile network, as many are, carries downloads from IPv4-only servers, both beside Wi-Fi and
// alone. The program asks that network for the prefix of its NAT64, once, and no other.
func TestNAT64(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	wifi, lte := r.lab.Link("wifi"), r.lab.Link("lte")
	if err := r.lab.StartNAT64(lte, r.dns); err != nil {
		t.Fatal(err)
	}
	r.configure("[link.lte]\ndns = [\"" + netlab.OriginAddr6.String() + "\"]\n")
	r.serve()
	o := r.object(10_000_000)
	const name = "example.com" // it has no IPv6 address
	named := strings.Replace(r.nginx.NamedURL(o), netlab.OriginName, name, 1)
	for _, url := range []string{named, strings.Replace(named, name, netlab.PublicAddr.String(), 1)} {
		for link, n := range r.over(func() { r.download(url, o) }) {
			if n < int64(o.Size)/part {
				t.Errorf("%s: %s carried %d bytes of %d", url, link, n, o.Size)
			}
		}
	}
	if err := wifi.Down(); err != nil {
		t.Fatal(err)
	}
	r.until("wifi is lost", func() bool { return strings.Contains(r.proxy.Said(), "link lost") })
	secure := strings.Replace(r.nginx.NamedSecureURL(o), netlab.OriginName, name, 1)
	r.download(named, o)
	r.download(secure, o, "--insecure")

	asked := slices.DeleteFunc(r.dns.Queries(), func(q netlab.Query) bool { return q.Name != "ipv4only.arpa" })
	if len(asked) == 0 || len(asked) > 2 || slices.ContainsFunc(asked, func(q netlab.Query) bool { return q.Link != "lte" || q.Type != "AAAA" }) {
		t.Errorf("asked for the prefix: %v", asked)
	}
}
