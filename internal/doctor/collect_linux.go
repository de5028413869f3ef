package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// Options select what to check.
type Options struct {
	Config     config.Config
	ConfigFile string // "" = none
	ConfigErr  error
	Getenv     func(string) string
	Online     bool // ask a DNS server over each link to resolve a name
	Candidates func(config.Config) ([]discover.Candidate, *link.Resolver, error)
}

// lookTime limits each look at something that may not answer.
const lookTime = 4 * time.Second

// asked is the name that DNS servers are asked for; whether it exists does not matter (RFC 6761 section 6.5).
const asked = "example.com"

// Collect collects facts about the machine. It takes a few seconds at most.
func Collect(ctx context.Context, o Options) *Facts {
	f := &Facts{
		Now:         time.Now(),
		ConfigFile:  o.ConfigFile,
		ConfigPath:  cmp.Or(o.ConfigFile, config.DefaultPath(o.Getenv)),
		ConfigError: o.ConfigErr,
		Budget:      int64(o.Config.Budget),
		Env:         map[string]string{},
		NetRaw:      netRaw(),
	}
	f.Executable, _ = os.Executable()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		f.Kernel = version(unix.ByteSliceToString(u.Release[:]))
	}
	for _, n := range []string{
		"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
		"no_proxy", "NO_PROXY",
	} {
		if v := o.Getenv(n); v != "" {
			f.Env[n] = v
		}
	}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		f.Files, f.FilesHard = lim.Cur, lim.Max
	}
	f.Memory, f.MemoryFrom = memoryLimit()

	var all sync.WaitGroup
	for _, p := range []struct{ flag, addr string }{{"listen", o.Config.Listen}, {"admin", o.Config.Admin}} {
		a, err := net.ResolveTCPAddr("tcp", p.addr)
		if p.addr == "" || err != nil {
			continue // no address, or a fault of the configuration
		}
		f.Ports = append(f.Ports, Port{
			Flag: p.flag, Addr: netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port()),
		})
	}
	running := tributaryAt(ctx, o.Config.Admin)
	for i := range f.Ports {
		all.Go(func() { f.Ports[i].look(running) })
	}
	resolver, err := f.list(o)
	f.LinksError = err
	for i := range f.Links {
		if f.Links[i].Use {
			all.Go(func() { f.Links[i].look(ctx, resolver, o.Online) })
		}
	}
	all.Wait()
	return f
}

// list finds the interfaces.
func (f *Facts) list(o Options) (*link.Resolver, error) {
	type found struct {
		all      []discover.Candidate
		resolver *link.Resolver
		system   []int
	}
	got, err := within(lookTime, func() (g found, err error) {
		g.system, _ = discover.Outbound(netip.Addr{}) // an error means that there is no way out
		g.all, g.resolver, err = o.Candidates(o.Config)
		return g, err
	})
	for _, c := range got.all {
		if f.System.Link.Name == "" && c.State != "" && slices.Contains(got.system, c.Link.Index) {
			f.System = c
		}
		table := len(o.Config.Tables(c.Link.Name)) > 0
		f.Links = append(f.Links, Link{Candidate: c, Table: table, RPFilter: -1})
	}
	return got.resolver, err
}

// within returns the result of look, or an error if look panics or takes longer than limit. A look that hangs keeps
// running until the process ends.
func within[T any](limit time.Duration, look func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o = outcome{err: fmt.Errorf("a check failed unexpectedly; please report this: %v", p)}
			}
			done <- o
		}()
		o.value, o.err = look()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(limit):
		var none T
		return none, fmt.Errorf("no answer from this machine for %v", limit)
	}
}

// look tries to listen on the address.
func (p *Port) look(running bool) {
	l, err := net.Listen("tcp", p.Addr.String())
	if err == nil {
		l.Close()
		return
	}
	p.Err = plain(err)
	p.Holder, _ = within(lookTime, func() (Holder, error) {
		h, _ := PortHolder("/proc", p.Addr)
		return h, nil
	})
	p.Running = running && (p.Holder.Name == "" || p.Holder.Name == "tributary")
}

// tributaryAt reports whether Tributary answers at an admin address.
func tributaryAt(ctx context.Context, admin string) bool {
	if admin == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return false
	}
	tr := &http.Transport{} // no proxy
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return err == nil && strings.Contains(string(b), "tributary_build_info")
}

// errOffline means that nothing was sent.
var errOffline = errors.New("not tried: --offline")

// look tests the link.
func (l *Link) look(ctx context.Context, r *link.Resolver, online bool) {
	if l.Link.Via != "" {
		if online {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			l.Upstream = l.Link.Probe(ctx)
		} else {
			l.Upstream = errOffline
		}
		return
	}
	l.RPFilter = max(setting("all"), setting(l.Link.Name))
	if !exists(l.Link.Name) {
		l.RPFilter = -1
	}
	_, l.BindError = within(lookTime, func() (struct{}, error) { return struct{}{}, bound(ctx, l.Link) })
	_, l.RouteError = within(lookTime, func() (struct{}, error) { return struct{}{}, discover.Routed(l.Link) })
	if four, ok := l.Link.Addr(false); ok {
		way, _ := within(lookTime, func() ([]int, error) { return discover.Outbound(four) })
		l.Reverse = slices.Contains(way, l.Link.Index)
	}
	if l.Servers, l.DNSError = r.Servers(l.Link); !online {
		return
	}
	if l.DNSError == nil {
		l.DNSTook, l.DNSError = ask(ctx, r, l.Link)
	}
	if l.DNSError != nil || l.Servers.Stub {
		l.Router = routerThatAnswers(ctx, l.Candidate)
	}
}

// ask sends one question and returns how long the answer took.
func ask(ctx context.Context, r *link.Resolver, l link.Link) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	began := time.Now()
	_, err := within(lookTime+time.Second, func() ([]netip.Addr, error) { return r.Lookup(ctx, l, "ip", asked) })
	if dns := new(net.DNSError); err == nil || errors.As(err, &dns) && dns.IsNotFound {
		return max(time.Since(began), time.Millisecond), nil
	}
	return 0, err
}

// routerThatAnswers returns the gateway of a link that is also a DNS server, as home routers are.
func routerThatAnswers(ctx context.Context, c discover.Candidate) netip.Addr {
	for _, g := range c.Gateways {
		if g.IsLinkLocalUnicast() {
			continue // the configuration does not support zones
		}
		l := c.Link
		l.DNS = []netip.AddrPort{netip.AddrPortFrom(g, 53)}
		if _, err := ask(ctx, &link.Resolver{Binder: link.Device{}}, l); err == nil {
			return g
		}
	}
	return netip.Addr{}
}

// bound binds a socket to the link; connecting a UDP socket sends nothing.
func bound(ctx context.Context, l link.Link) error {
	d := net.Dialer{Control: link.Device{}.Control(l)}
	c, err := d.DialContext(ctx, "udp4", "192.0.2.1:9") // RFC 5737: an address that nobody uses
	if b := new(link.BindError); errors.As(err, &b) {
		return b
	}
	if err == nil {
		c.Close()
	}
	return nil
}

func sysctl(name string) string {
	return "/proc/sys/net/ipv4/conf/" + filepath.Base(name) + "/rp_filter"
}

func exists(name string) bool { _, err := os.Stat(sysctl(name)); return err == nil }

func setting(name string) int {
	b, err := os.ReadFile(sysctl(name))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// version parses the first two numbers of a release such as "6.1.0-18-amd64".
func version(release string) (v [2]int) {
	_, _ = fmt.Sscanf(release, "%d.%d", &v[0], &v[1])
	return v
}

// netRaw reports whether CAP_NET_RAW is effective (capabilities(7): bit 13).
func netRaw() bool {
	for line := range strings.Lines(read("/proc/self/status")) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, _ := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return caps>>unix.CAP_NET_RAW&1 == 1
		}
	}
	return false
}

// memoryLimit returns how much memory this process may use.
func memoryLimit() (n int64, from string) {
	for line := range strings.Lines(read("/proc/meminfo")) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			kB, _ := strconv.ParseInt(f[1], 10, 64)
			n, from = kB<<10, "of this machine"
		}
	}
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			for ; ; path = filepath.Dir(path) { // the lowest of its own limit and those of the enclosing groups
				text := strings.TrimSpace(read(filepath.Join("/sys/fs/cgroup", path, "memory.max")))
				if max, err := strconv.ParseInt(text, 10, 64); err == nil && max < n {
					n, from = max, "of its control group"
				}
				if filepath.Dir(path) == path {
					break
				}
			}
		}
	}
	return n, from
}

func read(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
