package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/spread"
)

// Config contains all settings of the user. The zero value is not valid: start from Default.
type Config struct {
	// Listen is the address of the proxy, "host:port"; the host is an IP address or "localhost".
	Listen string `toml:"listen"`
	// Admin is the address of the read-only HTTP pages: metrics, health, proxy.pac. "" = none.
	Admin string `toml:"admin"`
	// Gateway is the address at which https objects are served to programs on this machine, "host:port"; "" = none.
	// GatewayHosts are the hosts that it fetches from, "host" or "host:port", in addition to those that "tributary use"
	// recorded.
	Gateway      string   `toml:"gateway"`
	GatewayHosts []string `toml:"gateway_hosts"`
	// RPC is the address of the server for aria2's JSON-RPC, "host:port"; "" = none. RPCOrigins are the origins of
	// pages that may call it, in addition to browser extensions: "https://example.com", or "null" for pages in files.
	RPC        string   `toml:"rpc"`
	RPCOrigins []string `toml:"rpc_origins"`
	// SOCKS is the address of the SOCKS5 server, "host:port"; "" = none.
	SOCKS string `toml:"socks"`
	// DownloadDir is the folder for downloads ordered by RPC; "" = Downloads in the home folder. MaxConcurrent is the
	// number of them that may run concurrently.
	DownloadDir   string `toml:"download_dir"`
	MaxConcurrent int    `toml:"max_concurrent"`
	// Control is the path of the Unix socket for tributary status; AutoControl = in the user's runtime folder, "" =
	// none.
	Control string `toml:"control"`
	// AllowRemote permits Listen and Admin to be reachable from other machines. Anyone who can reach them can use the
	// links.
	AllowRemote bool `toml:"allow_remote"`

	// ConnectPorts lists the destination ports of CONNECT tunnels that are open to clients from other machines.
	ConnectPorts []uint16 `toml:"connect_ports"`
	// AllowUsers lists the users of this machine, by name or number, who may use the proxy besides root and the user
	// who runs it; "all" = all users. The list is needed because every user's programs can reach loopback.
	AllowUsers []string `toml:"allow_users"`
	// AllowDestinations lists networks ("127.0.0.1", "10.0.0.0/8") that may be reached through the proxy although they
	// are denied by default: loopback, link-local, multicast, cloud metadata. The proxy's own listeners stay denied.
	AllowDestinations []string `toml:"allow_destinations"`
	// DenyPrivate also denies private networks (10/8, 172.16/12, 192.168/16, fc00::/7).
	DenyPrivate bool `toml:"deny_private"`

	// Links names the links that may be used; empty = all that lead to the internet. A named link is used even if its
	// kind is skipped by default (tunnel, bridge, ...). The flag is --link; in TOML, that key belongs to the tables.
	Links []string `toml:"links"`

	// VPN is the treatment of a VPN that carries the system's own traffic to the internet: VPNFollow or VPNAround.
	VPN string `toml:"vpn"`

	// AppSocket is the Unix socket of an app that owns the networks, "@name" for an abstract one. The app reports the
	// links, binds sockets and resolves names (docs/APPBRIDGE.md). "" = Tributary does that itself.
	AppSocket string `toml:"app_socket"`

	// Scheduler is the name of the algorithm that divides a transfer among links: one of schedule.Names.
	Scheduler string `toml:"scheduler"`
	// Goal determines which links a download leaves out: one of schedule.Goals.
	Goal string `toml:"goal"`
	// MeteredPerPercent is the amount of metered data that one percent of speed may cost with the goal cheapest.
	MeteredPerPercent Bytes `toml:"metered_per_percent"`
	// Slow determines when a link that is much slower than the others is left out. It is for measurements, as are
	// Threshold and TransferWindow; docs/SCHEDULERS.md describes them.
	Slow health.SlowCheck `toml:"slow"`

	// Threshold is the minimum size of objects that are fetched over several links.
	Threshold Bytes `toml:"threshold"`
	// Budget limits the bytes held for reordering by all transfers together.
	Budget Bytes `toml:"budget"`
	// TransferWindow limits the bytes held for reordering by one transfer.
	TransferWindow Bytes `toml:"transfer_window"`
	// WaitForLink is how long a transfer waits when no link is left; 0 = it fails at once.
	WaitForLink time.Duration `toml:"wait_for_link"`

	// Spread determines the programs whose simultaneous connections are spread over links if they cannot be divided.
	Spread spread.Mode `toml:"spread"`
	// Sticky lists hosts whose connections are never spread, each including its subdomains.
	Sticky []string `toml:"sticky"`
	// SpreadPrograms lists the programs whose redirected connections are spread, by the name of their executable
	// ("steam").
	SpreadPrograms []string `toml:"spread_programs"`

	// MaxConnectionsPerHost limits the number of open connections to one host over one link, whatever they are used
	// for; 0 = no limit.
	MaxConnectionsPerHost int `toml:"max_connections_per_host"`

	// Intercept enables opening the connections to the hosts of the authority that `tributary ca init` created.
	Intercept bool `toml:"intercept"`
	// Remember enables a small file that keeps what is learned about networks and origins for the next start.
	Remember bool `toml:"remember"`

	// LogLevel is the least level of messages.
	LogLevel string `toml:"log_level"`

	// Relay is the [relay] table.
	Relay Relay `toml:"relay"`
	// Link holds the [link.NAME] tables by the name of the link or a pattern of names; see LinkOf.
	Link map[string]Link `toml:"link"`
}

// Relay is the [relay] table: a server of the user's own that carries tunnels over all links.
type Relay struct {
	// Address is the "host:port" of the relay, which this user has paired with.
	Address string `toml:"address"`
	// Others lists further relays that this user has paired with. The nearest relay that answers is used.
	Others []string `toml:"others"`
	// Mode is the traffic that goes through the relay: RelayOff, RelayTunnels or RelayAll.
	Mode string `toml:"mode"`
	// Except lists hosts whose tunnels do not go through the relay, each including its subdomains, in addition to the
	// built-in list.
	Except []string `toml:"except"`
}

// The values of Relay.Mode.
const (
	RelayOff     = "off"
	RelayTunnels = "tunnels" // CONNECT, SOCKS5, and redirected connections
	RelayAll     = "all"     // also requests that are not divided, such as uploads
)

// Link is a [link.NAME] table.
type Link struct {
	// Via makes NAME a separate link whose connections go through an upstream proxy: "socks5://HOST:PORT" or
	// "socks5://USER:PASSWORD@HOST:PORT". The proxy resolves names too. "" = the link is an interface.
	Via string `toml:"via"`
	// Enabled is false for a link that must not be used, and true for one that is used even if its kind is skipped by
	// default. Unset leaves the choice to Tributary.
	Enabled *bool `toml:"enabled"`
	// DNS lists the name servers for this link, "address" or "address:port"; empty = those of the system.
	DNS []string `toml:"dns"`
	// Metered reports whether bytes on this link cost money. Unset = as the system reports.
	Metered *bool `toml:"metered"`
	// Trusted is false for a link that must not carry credentials in plain http, or tunnels that are not TLS, while a
	// trusted link is up. Unset = true.
	Trusted *bool `toml:"trusted"`
	// MaxRate limits the receive rate of this link, over all connections; 0 = no limit.
	MaxRate Rate `toml:"max_rate"`
	// Goal overrides Config.Goal for this link; "" = no override.
	Goal string `toml:"goal"`
	// Radio is the radio model of the link, which defines its cost in joules, by its name in package energy
	// ("galaxy-s3/lte"). "" = unknown; with the goal frugal, Wi-Fi and cellular links have a model anyway.
	Radio string `toml:"radio"`
	// Monthly limits the traffic of this link in a calendar month, in both directions and including headers; 0 = no
	// limit. Like MaxRate, it limits all links that a pattern matches together.
	Monthly Bytes `toml:"monthly"`
}

// The values of VPN.
const (
	VPNFollow = "follow" // the VPN is the link, and the links that carry it are not used
	VPNAround = "around" // the VPN is left alone, and links are used as if it were not there
)

// AutoControl is the value of Control that lets Tributary choose the path of the socket.
const AutoControl = "auto"

// Default returns the default configuration.
func Default() Config {
	return Config{
		Listen:            "127.0.0.1:8080",
		Admin:             "127.0.0.1:9091",
		Control:           AutoControl,
		VPN:               VPNFollow,
		ConnectPorts:      []uint16{443},
		Scheduler:         schedule.Default,
		Goal:              schedule.Fastest,
		MeteredPerPercent: schedule.DefaultPerPercent,
		Slow:              health.SlowGuarded,
		Threshold:         128 << 10,
		Budget:            64 << 20,
		TransferWindow:    16 << 20,
		WaitForLink:       time.Minute,
		Remember:          true,
		MaxConcurrent:     5,
		Spread:            spread.Auto,
		LogLevel:          "info",
		Relay:             Relay{Mode: RelayOff},
	}
}

// Values returns the values of a key that has only a few, nil for other keys.
func Values(key string) []string {
	switch key {
	case "scheduler":
		return schedule.Names()
	case "goal":
		return schedule.Goals()
	case "vpn":
		return []string{VPNFollow, VPNAround}
	case "spread":
		return []string{string(spread.Auto), string(spread.Off), string(spread.All)}
	case "slow":
		return []string{string(health.SlowGuarded), string(health.SlowLiteral), string(health.SlowOff)}
	case "log_level":
		return []string{"debug", "info", "warn", "error"}
	case "relay.mode":
		return []string{RelayOff, RelayTunnels, RelayAll}
	}
	return nil
}

// Level returns LogLevel as a slog.Level, or Info if it is not valid.
func (c Config) Level() slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(c.LogLevel)) != nil {
		return slog.LevelInfo
	}
	return l
}

// Named reports whether the user named a link for use, in Links or by a table that enables it. A named link is used
// even if its kind is skipped by default.
func (c Config) Named(name string) bool {
	for _, l := range c.Links {
		if l == name {
			return true
		}
	}
	e := c.LinkOf(name).Enabled
	return e != nil && *e
}

// Exclude forbids the use of a link, whatever the tables say. The last of Links stays there, since no Links mean all:
// Check reports the contradiction.
func (c *Config) Exclude(name string) {
	others := slices.DeleteFunc(slices.Clone(c.Links), func(l string) bool { return l == name })
	if len(others) > 0 {
		c.Links = others
	}
	tables := maps.Clone(c.Link)
	if tables == nil {
		tables = map[string]Link{}
	}
	t := tables[name]
	t.Enabled = new(bool)
	tables[name], c.Link = t, tables
}

// Allows reports whether the configuration allows using the link.
func (c Config) Allows(name string) bool {
	if e := c.LinkOf(name).Enabled; e != nil && !*e {
		return false
	}
	return len(c.Links) == 0 || c.Named(name)
}

// Trusts reports whether the named link may carry credentials in the clear.
func (c Config) Trusts(name string) bool {
	t := c.LinkOf(name).Trusted
	return t == nil || *t
}

// Upstream returns Via as a URL with a port, or nil if it is empty or invalid. Validate reports invalid values.
func (l Link) Upstream() *url.URL {
	u, _ := parseVia(l.Via)
	return u
}

// Upstreams returns the names of the links that use an upstream proxy, sorted.
func (c Config) Upstreams() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Link)) {
		if c.Link[name].Upstream() != nil {
			names = append(names, name)
		}
	}
	return names
}

// Servers returns DNS as addresses, with port 53 filled in. Entries that are not addresses are left out; Validate
// reports them.
func (l Link) Servers() []netip.AddrPort {
	var all []netip.AddrPort
	for _, s := range l.DNS {
		if a, err := parseServer(s); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// Destinations returns AllowDestinations as networks. Invalid entries are left out; Validate reports them.
func (c Config) Destinations() []netip.Prefix {
	var all []netip.Prefix
	for _, s := range c.AllowDestinations {
		if p, err := parseNetwork(s); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// parseNetwork parses a network or a single address.
func parseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

// upstreamPorts are the default ports of upstream proxies, by the scheme of their URL: SOCKS (RFC 1928 section 3).
var upstreamPorts = map[string]string{"socks5": "1080"}

// parseVia parses the URL of an upstream proxy. Its errors do not quote the URL, which may contain a password.
func parseVia(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New(`want a URL like "socks5://127.0.0.1:1080"`)
	case upstreamPorts[u.Scheme] == "":
		return nil, fmt.Errorf(`%q is not supported: write "socks5://HOST:PORT"; names are always resolved by the proxy`,
			u.Scheme+"://")
	case strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("remove everything after the port")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), upstreamPorts[u.Scheme])
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("%q is not a port number", u.Port())
	}
	if u.User != nil { // RFC 1929 section 2
		password, _ := u.User.Password()
		if n := len(u.User.Username()); n == 0 || n > 255 || len(password) == 0 || len(password) > 255 {
			return nil, errors.New("want a user and a password of 1 to 255 bytes each")
		}
	}
	u.Path = ""
	return u, nil
}

func parseServer(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, 53), nil
	}
	return netip.ParseAddrPort(s)
}
