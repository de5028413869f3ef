package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(`
listen = "127.0.0.1:3128"
admin = ""
links = ["wlan0", "wwan0"]
scheduler = "single"
slow = "literal"
budget = "32MiB"
max_connections_per_host = 6
transfer_window = 8388608
threshold = "100 KB"
wait_for_link = "90s"
log_level = "debug"

[link.wlan0]
dns = ["1.1.1.1", "[2606:4700:4700::1111]:5353"]
[link.wwan0]
metered = true
[link.eth0]
enabled = false
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	want := Default()
	want.Listen, want.Admin = "127.0.0.1:3128", ""
	want.Links = []string{"wlan0", "wwan0"}
	want.Scheduler, want.Slow, want.LogLevel = "single", health.SlowLiteral, "debug"
	want.Budget, want.TransferWindow, want.Threshold = 32<<20, 8<<20, 100_000
	want.WaitForLink, want.MaxConnectionsPerHost = 90*time.Second, 6
	want.Link = map[string]Link{
		"wlan0": {DNS: []string{"1.1.1.1", "[2606:4700:4700::1111]:5353"}},
		"wwan0": {Metered: &yes},
		"eth0":  {Enabled: &no},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	servers := []netip.AddrPort{
		netip.MustParseAddrPort("1.1.1.1:53"), netip.MustParseAddrPort("[2606:4700:4700::1111]:5353"),
	}
	if s := got.Link["wlan0"].Servers(); !reflect.DeepEqual(s, servers) {
		t.Errorf("servers %v, want %v", s, servers)
	}
	if got.Level() != slog.LevelDebug {
		t.Errorf("level %v", got.Level())
	}
}

func TestVia(t *testing.T) {
	for via, want := range map[string]string{
		"socks5://127.0.0.1:1080": "socks5://127.0.0.1:1080", "socks5://proxy.example": "socks5://proxy.example:1080", "socks5://[::1]": "socks5://[::1]:1080",
		"socks5://me:p%40ss:word@10.0.0.1:9050/": "socks5://me:p%40ss%3Aword@10.0.0.1:9050",
	} {
		c := Default()
		c.Link = map[string]Link{"office": {Via: via}, "wlan0": {}}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", via, err)
		}
		if u := c.Link["office"].Upstream(); u == nil || u.String() != want {
			t.Errorf("%s: %v, want %s", via, u, want)
		}
		if got := c.Upstreams(); !slices.Equal(got, []string{"office"}) {
			t.Errorf("%s: links %q", via, got)
		}
	}
	long := strings.Repeat("x", 256)
	for via, want := range map[string]string{
		"127.0.0.1:1080": "socks5://127.0.0.1:1080", "socks5:127.0.0.1": "want a URL like", "socks5://": "want a URL like", "socks5://:1080": "want a URL like",
		"socks5://secret@\x7f": "want a URL like", "socks5h://h": `"socks5h://" is not supported`, "http://h": `"http://" is not supported`,
		"socks5://h/x": "remove everything after the port", "socks5://h?x": "remove everything after the port", "socks5://h#x": "remove everything after the port",
		"socks5://h:0": `"0" is not a port number`, "socks5://h:65536": `"65536" is not a port`, "socks5://secret@h": "1 to 255 bytes each",
		"socks5://:secret@h": "1 to 255 bytes each", "socks5://me:secret" + long + "@h": "1 to 255 bytes each", "socks5://secret" + long + ":x@h": "1 to 255 bytes each",
	} {
		c := Default()
		c.Link = map[string]Link{"office": {Via: via}}
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), "[link.office] via: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want one with %q and without the password", via, err, want)
		}
		if len(c.Upstreams()) != 0 {
			t.Errorf("%s leads somewhere", via)
		}
	}
	c := Default()
	c.Link = map[string]Link{"office": {Via: "socks5://h", DNS: []string{"1.1.1.1"}}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "[link.office] dns: has no effect with via") {
		t.Errorf("DNS servers of a link that asks none: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":               {"listn = \"x\"", "line 1: listn: is not a known key: did you mean listen?"},
		"unknown key, nothing near": {"color = true", "line 1: color: is not a known key"},
		"unknown key of a link":     {"[link.wlan0]\n\ndsn = []", "line 3: [link.wlan0] dsn: is not a known key: did you mean dns?"},
		"text for a list":           {`links = "wlan0"`, `links: want a list of strings, ["..."], not a string`},
		"number for a text":         {"listen = 8080", `listen: want a string, "...", not a number`},
		"list of numbers":           {"links = [1]", "want a list of strings"},
		"port too large":            {"connect_ports = [70000]", "70000"},
		"table for a key":           {"[admin]\nx = 1", `admin: want a string, "...", not a table`},
		"dotted":                    {"admin.x = 1", `admin: want a string, "...", not a table`},
		"link is a number":          {"link.wlan0 = 1", "[link.wlan0]: is not a table"},
		"rate":                      {"[link.wlan0]\nmax_rate = 3", `want a rate like "20Mbit/s", not a number`},
		"link for links":            {`link = ["wlan0"]`, "write links = [...]"},
		"size":                      {`budget = "64 MiB or so"`, `"64 MiB or so" is not a size`},
		"size, negative":            {`budget = "-1MiB"`, "is not a size"},
		"size, overflow":            {`budget = "99999999999GiB"`, "is not a size"},
		"not TOML":                  {`budget`, "line 1"},
		"connections, text":         {`max_connections_per_host = "2"`, "max_connections_per_host: want a number, not a string"},
		"duration, no meaning":      {`wait_for_link = "soon"`, "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestGateway: the gateway serves only this machine, whatever the value of allow_remote.
func TestGateway(t *testing.T) {
	for text, want := range map[string]string{
		`gateway = "127.0.0.1:8081"`:                        "",
		`gateway = "[::1]:8081"`:                            "",
		`gateway = "localhost:8081"`:                        "",
		`gateway = "0.0.0.0:8081"`:                          "listen on 127.0.0.1",
		"allow_remote = true\ngateway = \"192.0.2.1:8081\"": "listen on 127.0.0.1",
		`gateway = ":8081"`:                                 "is not an IP address",
		`gateway = "8081"`:                                  "is not an address",
		`gateway = "127.0.0.1:8080"`:                        "is \"127.0.0.1:8080\" as listen is",
		`gateway = "127.0.0.1:9091"`:                        "is \"127.0.0.1:9091\" as admin is",
		`gateway_hosts = ["pypi.org", "a.example:8443"]`:    "",
		`gateway_hosts = ["https://pypi.org"]`:              "is not a host",
		`gateway_hosts = ["pypi.org/simple"]`:               "is not a host",
		`gateway_hosts = ["me@pypi.org"]`:                   "is not a host",
		`gateway_hosts = [""]`:                              "is not a host",
	} {
		c, err := Parse(text)
		if err == nil {
			err = c.Validate()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestDefaultsAreCopies(t *testing.T) {
	a, err := Parse("[link.wlan0]\nenabled = true\n")
	if err != nil {
		t.Fatal(err)
	}
	a.Links = append(a.Links, "x")
	if b := Default(); len(b.Link) != 0 || len(b.Links) != 0 {
		t.Errorf("defaults changed: %+v", b)
	}
}

func TestValidateNamesEverything(t *testing.T) {
	no := false
	c := Config{
		Listen: ":8080", Admin: "proxy.example:x", Links: []string{"wlan0", "wlan0", "a/b", "off"},
		Scheduler: "alg4", LogLevel: "loud",
		Spread: "some", Sticky: []string{"https://bank.example/", "*.shop.example", "ok.example", "2001:db8::1"}, SpreadPrograms: []string{"/usr/bin/steam", "wget"},
		Goal: "thirst", Slow: "on", Threshold: -1, MaxConnectionsPerHost: -1, Budget: 1, TransferWindow: 2, WaitForLink: 60,
		Link: map[string]Link{"off": {Enabled: &no, DNS: []string{"dns.example"}, Goal: "none", Radio: "galaxy-s3/6g"}, "on": {Goal: "frugal"}},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`listen: "" is not an IP address`, `admin: "x" is not a port`, `admin: "proxy.example" is not an IP`,
		`"wlan0" is listed twice`, `"a/b" is not an interface name`, `[link.off] says enabled = false`, `"dns.example" is not an IP`,
		`spread: invalid value "some"`, `sticky: "https://bank.example/" is not a host`, `"*.shop.example" is not a host`,
		`spread_programs: "/usr/bin/steam" is not a program name`,
		`scheduler: invalid value "alg4": want one of alg3, confluence, single`, "log_level: ",
		`goal: invalid value "thirst": want one of fastest, frugal, cheapest`, `[link.off] goal: "none" is not one of`, `[link.on] goal: is "frugal" beside "thirst"`, `use one of lte, wifi`,
		`slow: invalid value "on": want one of guarded, literal, off`,
		"threshold: ", "max_connections_per_host: -1 is negative", "budget: ", "transfer_window: ", "with a unit, like",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(err.Error(), "ok.example") || strings.Contains(err.Error(), "2001:db8") || strings.Contains(err.Error(), "wget") {
		t.Error("hosts or a program that are fine are named")
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestListen(t *testing.T) {
	for _, c := range []struct {
		addr   string
		remote bool
		ok     bool
	}{
		{"127.0.0.1:8080", false, true},
		{"127.1.2.3:0", false, true},
		{"[::1]:8080", false, true},
		{"[::ffff:127.0.0.1]:8080", false, true},
		{"localhost:8080", false, true},
		{"192.0.2.1:8080", false, false},
		{"192.0.2.1:8080", true, true},
		{"0.0.0.0:8080", false, false},
		{"[::]:8080", false, false},
		{"[::]:8080", true, true},
		{":8080", true, false}, // all addresses must be requested explicitly
		{"127.0.0.1", false, false},
		{"127.0.0.1:http", false, false},
		{"127.0.0.1:65536", false, false},
	} {
		t.Run("R187 "+c.addr, func(t *testing.T) {
			cfg := Default()
			cfg.Listen, cfg.AllowRemote = c.addr, c.remote
			if err := cfg.Validate(); (err == nil) != c.ok {
				t.Errorf("allow_remote = %v: error %v", c.remote, err)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	yes, no := true, false
	tables := map[string]Link{"tun0": {Enabled: &yes}, "eth0": {Enabled: &no}}
	for _, c := range []struct {
		links         []string
		name          string
		named, allows bool
	}{
		{nil, "wlan0", false, true},
		{nil, "tun0", true, true},
		{nil, "eth0", false, false},
		{[]string{"wlan0"}, "wlan0", true, true},
		{[]string{"wlan0"}, "wwan0", false, false},
		{[]string{"wlan0"}, "tun0", true, true},
	} {
		cfg := Config{Links: c.links, Link: tables}
		if n, a := cfg.Named(c.name), cfg.Allows(c.name); n != c.named || a != c.allows {
			t.Errorf("links %v: %s is named %v, allowed %v, want %v, %v", c.links, c.name, n, a, c.named, c.allows)
		}
	}
}

func TestExclude(t *testing.T) {
	yes := true
	for _, c := range []struct {
		links        []string
		name         string
		allows, errs bool
	}{
		{nil, "wlan0", true, false},
		{nil, "tun0", false, false},
		{[]string{"wlan0", "tun0"}, "wlan0", true, false},
		{[]string{"wlan0", "tun0"}, "tun0", false, false},
		{[]string{"tun0"}, "tun0", false, true}, // not: every other link
		{[]string{"tun0"}, "wlan0", false, true},
	} {
		cfg := Default()
		cfg.Links, cfg.Link = c.links, map[string]Link{"tun0": {Enabled: &yes}}
		before := cfg
		cfg.Exclude("tun0")
		if a, err := cfg.Allows(c.name), cfg.Validate(); a != c.allows || (err != nil) != c.errs || !before.Allows("tun0") {
			t.Errorf("links %v: %s is allowed %v, want %v: %v", c.links, c.name, a, c.allows, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	env := func(k string) string { return map[string]string{"XDG_CONFIG_HOME": dir}[k] }
	c, err := Load("", env)
	if err != nil || !reflect.DeepEqual(c.Config, Default()) || c.Path != "" {
		t.Fatalf("without a file: %+v, %v", c, err)
	}
	if _, err := Load(filepath.Join(dir, "none.toml"), env); err == nil {
		t.Error("no error for a named file that is missing")
	}

	path := filepath.Join(dir, "tributary", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`scheduler = "single"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load("", env); err != nil || c.Scheduler != "single" {
		t.Errorf("the file at the default path: %+v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte(`schedular = "single"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Load("", env); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name %s", err, path)
	}
}

func TestDefaultPath(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/x", "/home/u", "/x/tributary/config.toml"},
		{"", "/home/u", "/home/u/.config/tributary/config.toml"},
		{"relative", "/home/u", "/home/u/.config/tributary/config.toml"},
		{"", "", ""},
	} {
		env := func(k string) string { return map[string]string{"XDG_CONFIG_HOME": c.xdg, "HOME": c.home}[k] }
		if got := DefaultPath(env); got != c.want {
			t.Errorf("XDG_CONFIG_HOME=%q HOME=%q: %q, want %q", c.xdg, c.home, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "17": 17, "17B": 17, "1KB": 1000, "64MiB": 64 << 20, " 2 GiB ": 2 << 30, "3GB": 3e9,
	} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: %d, %v, want %d", text, b, err, want)
		}
	}
	for b, want := range map[Bytes]string{0: "0B", 1: "1B", 1 << 10: "1KiB", 3 << 19: "1536KiB", 64 << 20: "64MiB", 1000: "1000B"} {
		if got := b.String(); got != want {
			t.Errorf("%d: %q, want %q", int64(b), got, want)
		}
	}
}

// TestSchedulers: every scheduler of the product is accepted by its name.
func TestSchedulers(t *testing.T) {
	for _, name := range schedule.Names() {
		c := Default()
		c.Scheduler = name
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
	c := Default()
	c.Scheduler = "dems" // of the laboratory
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "confluence") {
		t.Error(err)
	}
}

func TestDestinations(t *testing.T) {
	c := Default()
	c.AllowDestinations = []string{"127.0.0.1", "10.1.2.3/8", "::1", "::ffff:192.0.2.1"}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Destinations()); got != "[127.0.0.1/32 10.0.0.0/8 ::1/128 192.0.2.1/32]" {
		t.Errorf("networks %s", got)
	}
	c.AllowDestinations = []string{"example.com", "10.0.0.0/33", "fe80::1%eth0"}
	err := c.Validate()
	for _, s := range c.AllowDestinations {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("allow_destinations: %q is not a network", s)) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestUsers(t *testing.T) {
	root := "root"
	if runtime.GOOS == "android" {
		root = "0" // no user names here
	}
	c := Default()
	for _, tt := range []struct {
		allow []string
		want  []uint32
	}{
		{nil, []uint32{0, 1000}},
		{[]string{root, "4242"}, []uint32{0, 1000, 0, 4242}},
		{[]string{"4242", "all"}, nil},
	} {
		c.AllowUsers = tt.allow
		if got, err := c.Users(1000); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("R185 %v: %v, %v", tt.allow, got, err)
		}
	}
	c.AllowUsers = []string{"no-such-user", "-1", ""}
	err := c.Validate()
	for _, name := range c.AllowUsers {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("allow_users: %q is not a user", name)) {
			t.Errorf("R185 %q: %v", name, err)
		}
	}
}

func TestRelayOthers(t *testing.T) {
	c := Default()
	c.Relay = Relay{Address: "a.example:443", Others: []string{"b.example:443", "[2001:db8::1]:8443"}, Mode: RelayTunnels}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	for _, r := range []Relay{
		{Others: []string{"b.example:443"}, Mode: RelayTunnels},
		{Address: "a.example:443", Others: []string{"b.example"}, Mode: RelayTunnels},
	} {
		c.Relay = r
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "[relay] others") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
