package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// healthy is a laptop without problems.
func healthy() *Facts {
	up := func(name, kind, address, gateway string, metric int) Link {
		return Link{
			Candidate: discover.Candidate{
				Use: true, State: "up", Gateways: []netip.Addr{addr(gateway)},
				Link: link.Link{
					Name: name, Kind: kind, Metric: metric, Addrs: []netip.Addr{addr(address), addr("2001:db8::" + gateway[len(gateway)-1:])},
					Prefixes: []netip.Prefix{netip.PrefixFrom(addr(address), 24).Masked()},
				},
			},
			Servers: link.Servers{Addrs: []netip.AddrPort{netip.AddrPortFrom(addr(gateway), 53)}, From: "/etc/resolv.conf"},
			DNSTook: 5 * time.Millisecond,
		}
	}
	f := &Facts{
		Kernel: [2]int{6, 1}, Executable: "/usr/bin/tributary", Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
		Links: []Link{
			up("wlan0", link.KindWiFi, "192.168.1.7", "192.168.1.1", 600), up("wwan0", link.KindCellular, "10.9.8.7", "10.9.8.2", 700),
		},
		Ports: []Port{
			{Flag: "listen", Addr: netip.MustParseAddrPort("127.0.0.1:8080")},
			{Flag: "admin", Addr: netip.MustParseAddrPort("127.0.0.1:9091")},
		},
		Env: map[string]string{}, Files: 1024, FilesHard: 524288, Memory: 8 << 30, MemoryFrom: "of this machine", Budget: 64 << 20,
	}
	f.System, f.Links[0].Reverse = f.Links[0].Candidate, true
	f.ConfigPath = "/home/me/.config/tributary/config.toml"
	return f
}

// through is a link through an upstream proxy; connecting to the proxy had this outcome.
func through(err error) Link {
	return Link{
		Candidate: discover.Candidate{Use: true, Link: link.Link{Name: "office", Kind: link.KindSOCKS5, Via: "socks5://127.0.0.1:1080"}}, Upstream: err,
	}
}

func TestHealthy(t *testing.T) {
	for _, c := range Judge(healthy()) {
		if c.Verdict != OK || c.Fix != "" {
			t.Errorf("%+v", c)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Facts)
		check  string
		want   Verdict
		found  string // part of the finding
		fix    string // part of the fix
	}{
		{"no configuration", func(f *Facts) { f.ConfigError = errors.New("config.toml:3: x") }, "configuration", Fail, "config.toml:3", "edit it"},
		{"a configuration", func(f *Facts) { f.ConfigFile = "/etc/t.toml" }, "configuration", OK, "/etc/t.toml", ""},
		{"an old kernel", func(f *Facts) { f.Kernel = [2]int{5, 6} }, "kernel", Fail, "5.6", "setcap cap_net_raw+ep /usr/bin/tributary"},
		{"an older one", func(f *Facts) { f.Kernel = [2]int{4, 19} }, "kernel", Fail, "4.19", "setcap"},
		{"the first that will do", func(f *Facts) { f.Kernel = [2]int{5, 7} }, "kernel", OK, "", ""},
		{"an old kernel as root", func(f *Facts) { f.Kernel, f.NetRaw = [2]int{5, 6}, true }, "kernel", OK, "CAP_NET_RAW", ""},
		{"an unknown kernel", func(f *Facts) { f.Kernel = [2]int{} }, "kernel", Skipped, "", ""},

		{"no link", func(f *Facts) { f.Links = nil }, "links", Fail, "no interface", "--link wlan0"},
		{"no link, no route", func(f *Facts) { f.Links, f.System = nil, discover.Candidate{} }, "links", Fail, "no interface", "tributary links"},
		{"one link", func(f *Facts) { f.Links = f.Links[:1] }, "links", Warn, "only wlan0", "connect"},
		{"one link in use", func(f *Facts) { f.Links[1].Use = false }, "links", Warn, "only wlan0", "connect"},
		{"an upstream proxy", func(f *Facts) { f.Links[1] = through(nil) }, "upstream office", OK, "socks5://127.0.0.1:1080 accepts", ""},
		{"no upstream proxy", func(f *Facts) { f.Links[1] = through(errors.New("refused")) }, "upstream office", Fail, "refused", "via in [link.office]"},
		{"an upstream proxy, offline", func(f *Facts) { f.Links[1] = through(errOffline) }, "upstream office", Skipped, "--offline", ""},
		{"no list of links", func(f *Facts) { f.LinksError = errors.New("netlink") }, "links", Fail, "netlink", ""},
		{"a metered link", func(f *Facts) { f.Links[1].Link.Terms.Metered = true }, "links", OK, "wwan0 (metered)", ""},

		{
			"no permission to bind", func(f *Facts) { f.Links[1].BindError = fmt.Errorf("bind: %w", unix.EPERM) },
			"bind wwan0", Fail, "not permitted", "setcap cap_net_raw+ep /usr/bin/tributary",
		},
		{"the link has gone", func(f *Facts) { f.Links[1].BindError = unix.ENODEV }, "bind wwan0", Fail, "no such device", "tributary links"},
		{"no route", func(f *Facts) { f.Links[1].RouteError = errors.New("unreachable") }, "route wwan0", Fail, "unreachable", "via 10.9.8.2 dev wwan0"},
		{
			"no route, no gateway", func(f *Facts) { f.Links[1].RouteError, f.Links[1].Gateways = errors.New("x"), nil },
			"route wwan0", Fail, "", "via GATEWAY dev wwan0",
		},
		{"strict filter on the second", func(f *Facts) { f.Links[1].RPFilter = 1 }, "rp_filter wwan0", Fail, "prefers wlan0", "conf.wwan0.rp_filter=2"},
		{"strict filter on the first", func(f *Facts) { f.Links[0].RPFilter = 1 }, "rp_filter wlan0", OK, "", ""},
		{"strict filter, a route by source", func(f *Facts) { f.Links[1].RPFilter, f.Links[1].Reverse = 1, true }, "rp_filter wwan0", OK, "", ""},
		{"loose filter", func(f *Facts) { f.Links[1].RPFilter = 2 }, "rp_filter wwan0", OK, "", ""},
		{"unknown filter", func(f *Facts) { f.Links[1].RPFilter = -1 }, "rp_filter wwan0", Skipped, "", ""},
		{
			"strict filter, name with a dot", func(f *Facts) { f.Links[1].RPFilter, f.Links[1].Link.Name = 1, "eth0.5" },
			"rp_filter eth0.5", Fail, "", "conf.eth0/5.rp_filter=2",
		},
		{
			"strict filter, IPv6 only", func(f *Facts) {
				f.Links[1].RPFilter, f.Links[1].Link.Addrs = 1, []netip.Addr{addr("2001:db8::1")}
			}, "rp_filter wwan0", OK, "no IPv4", "",
		},

		{
			"no DNS server", func(f *Facts) { f.Links[1].Servers, f.Links[1].DNSError = link.Servers{}, errors.New("none is known") },
			"dns wwan0", Fail, "none is known", `'dns = ["ADDRESS"]' >> /home/me/.config/tributary/config.toml`,
		},
		{
			"a router that answers instead", func(f *Facts) { f.Links[1].DNSError, f.Links[1].Router = errors.New("timeout"), addr("10.9.8.2") },
			"dns wwan0", Fail, "does not answer",
			`mkdir -p /home/me/.config/tributary && printf '\n%s\n%s\n' '[link.wwan0]' 'dns = ["10.9.8.2"]' >> /home/me/`,
		},
		{
			"a table that is there", func(f *Facts) { f.Links[1].DNSError, f.Links[1].Table = errors.New("timeout"), true },
			"dns wwan0", Fail, "", "put  dns = [\"ADDRESS\"]  into [link.wwan0]",
		},
		{
			"odd names", func(f *Facts) {
				f.Links[1].DNSError, f.Links[1].Link.Name, f.ConfigPath = errors.New("timeout"), "eth0.5", "/it's here/c.toml"
			},
			"dns eth0.5", Fail, "", `'[link."eth0.5"]' 'dns = ["ADDRESS"]' >> '/it'\''s here/c.toml'`,
		},
		{
			"a firewall", func(f *Facts) { f.Links[1].DNSError = &net.DNSError{Err: "write udp: " + unix.EPERM.Error()} },
			"dns wwan0", Fail, "firewall", "nft list ruleset",
		},
		{"a dead DNS server", func(f *Facts) { f.Links[1].DNSError = errors.New("timeout") }, "dns wwan0", Fail, "does not answer", "[link.wwan0]"},
		{"a stub", func(f *Facts) { f.Links[1].Servers.Stub = true }, "dns wwan0", Warn, "over any link", "[link.wwan0]"},
		{"DNS not asked", func(f *Facts) { f.Links[1].DNSTook = 0 }, "dns wwan0", OK, "10.9.8.2 (/etc/resolv.conf)", ""},

		{"IPv4 only", func(f *Facts) { f.Links[0].Link.Addrs = f.Links[0].Link.Addrs[:1] }, "families wlan0", OK, "IPv4 only", ""},
		{
			"IPv6 without a route", func(f *Facts) {
				f.Links[0].Link.Addrs = f.Links[0].Link.Addrs[:1]
				f.Links[0].Link.Prefixes = append(f.Links[0].Link.Prefixes, netip.MustParsePrefix("2001:db8::/64"))
			}, "families wlan0", OK, "no default route for it", "",
		},
		{"IPv6 only", func(f *Facts) { f.Links[0].Link.Addrs = f.Links[0].Link.Addrs[1:] }, "families wlan0", Warn, "IPv6 only", ""},

		{
			"one router", func(f *Facts) {
				f.Links[1].Gateways, f.Links[1].Link.Prefixes = f.Links[0].Gateways, f.Links[0].Link.Prefixes
			}, "router", Warn, "wlan0 and wwan0", "tethering",
		},
		{
			"a VPN", func(f *Facts) {
				f.System = discover.Candidate{Link: link.Link{Name: "wg0", Kind: link.KindTunnel}}
			}, "vpn", Warn, "wg0", "--vpn follow",
		},

		{
			"a port taken", func(f *Facts) { f.Ports[0].Err, f.Ports[0].Holder = errors.New("in use"), Holder{77, "squid"} },
			"port listen", Fail, "process 77 (squid)", "--listen 127.0.0.1:8081",
		},
		{
			"a port that systemd keeps", func(f *Facts) { f.Ports[0].Err, f.Ports[0].Holder = errors.New("in use"), Holder{1, "systemd"} },
			"port listen", Fail, "systemd keeps 127.0.0.1:8080 open", "systemctl list-sockets",
		},
		{"a port that cannot be had", func(f *Facts) { f.Ports[1].Err = errors.New("permission") }, "port admin", Fail, "permission", "--admin 127.0.0.1:9092"},
		{"it runs", func(f *Facts) { f.Ports[0].Err, f.Ports[0].Running = errors.New("in use"), true }, "port listen", OK, "is running", ""},

		{
			"the shell uses it", func(f *Facts) {
				f.Env["http_proxy"], f.Env["no_proxy"] = "http://127.0.0.1:8080", "example.com, localhost"
			}, "proxy variables", OK, "use Tributary", "",
		},
		{"no_proxy is missing", func(f *Facts) { f.Env["http_proxy"] = "localhost:8080" }, "proxy variables", Warn, "no_proxy", "export no_proxy="},
		{"upper-case", func(f *Facts) { f.Env["HTTP_PROXY"] = "http://[::1]:8080/" }, "proxy variables", Warn, "curl", "export http_proxy='http://[::1]:8080/'"},
		{
			"another proxy", func(f *Facts) { f.Env["http_proxy"] = "http://me:secret@proxy.corp:3128" },
			"proxy variables", Warn, "@proxy.corp:3128 is another proxy", "unset http_proxy",
		},
		{"another port", func(f *Facts) { f.Env["all_proxy"] = "http://127.0.0.1:1080" }, "proxy variables", Warn, "another proxy", "unset all_proxy"},

		{"https alone", func(f *Facts) { f.Env["HTTPS_PROXY"] = "corp:1" }, "proxy variables", Warn, "another proxy", "unset HTTPS_PROXY"},
		{"a scheme in no_proxy", func(f *Facts) { f.Env["no_proxy"] = "a,http://b/" }, "no_proxy", Warn, "scheme", "export no_proxy=a,b"},
		{"a star in no_proxy", func(f *Facts) { f.Env["NO_PROXY"] = "localhost,*.a" }, "no_proxy", Warn, "*", "export NO_PROXY=localhost,.a"},
		{"blanks in no_proxy", func(f *Facts) { f.Env["no_proxy"] = "a b" }, "no_proxy", Warn, "commas", "export no_proxy=a,b"},
		{"two of them", func(f *Facts) { f.Env["no_proxy"], f.Env["NO_PROXY"] = "a", "b" }, "no_proxy", Warn, "differ", `NO_PROXY="$no_proxy"`},

		{"few files", func(f *Facts) { f.FilesHard = 256 }, "open files", Warn, "256", "LimitNOFILE"},
		{"unknown limit", func(f *Facts) { f.FilesHard = 0 }, "open files", Skipped, "", ""},
		{"little memory", func(f *Facts) { f.Memory = 100 << 20 }, "memory", Warn, "more than half", `budget = "12MiB"`},
		{"unknown memory", func(f *Facts) { f.Memory = 0 }, "memory", Skipped, "", ""},
		{"a clock that was never set", func(f *Facts) { f.Now = time.Unix(0, 0) }, "clock", Fail, "certificates", "timedatectl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := healthy()
			c.change(f)
			all := Judge(f)
			found := false
			for _, got := range all {
				if got.Name != c.check {
					continue
				}
				found = true
				if got.Verdict != c.want || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Fix, c.fix) {
					t.Errorf("%+v, want %s with %q, fix %q", got, c.want, c.found, c.fix)
				}
				if (got.Verdict == OK || got.Verdict == Skipped) && got.Fix != "" {
					t.Errorf("a fix for nothing: %+v", got)
				}
				if strings.Contains(got.Found, "secret") {
					t.Errorf("tells a password: %s", got.Found)
				}
			}
			if !found {
				t.Errorf("no check %q", c.check)
			}
			if Failed(all) != (c.want == Fail) {
				t.Errorf("failed: %v", Failed(all))
			}
		})
	}
}

func TestAFaultOfOneCheck(t *testing.T) {
	got := guarded(func(*Facts) []Check { panic("oops") }, nil)
	if len(got) != 1 || got[0].Verdict != Skipped || !strings.Contains(got[0].Found, "oops") {
		t.Errorf("%+v", got)
	}
}
