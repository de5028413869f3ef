package doctor

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// environment checks the proxy variables that other programs read; Tributary itself does not read them.
func environment(f *Facts) []Check {
	name, proxy := proxyVariable(func(n string) string { return f.Env[n] })
	var own []netip.AddrPort
	for _, p := range f.Ports {
		own = append(own, p.Addr)
	}
	c := Check{
		Name: "proxy variables", Verdict: OK,
		Found: "no proxy variable is set: programs started here do not use Tributary",
	}
	if proxy == "" {
		return append([]Check{c}, exceptions(f)...)
	}
	c.Found = name + "=" + withoutUser(proxy)
	switch {
	case !isOwn(proxy, own):
		c.Verdict = Warn
		c.Found += " is another proxy, which Tributary does not use: it connects to servers directly. If that proxy is the only way out, no link works"
		c.Fix = "unset " + strings.Join(others(func(n string) string { return f.Env[n] }, own), " ")
	case name == "HTTP_PROXY":
		c.Verdict, c.Found, c.Fix = Warn, c.Found+": curl ignores its upper-case form",
			"export http_proxy="+quote(proxy)
	case !coversLoopback(f.Env["no_proxy"] + "," + f.Env["NO_PROXY"]):
		c.Verdict, c.Found = Warn,
			c.Found+", and no_proxy does not exempt this machine: requests to local servers go to Tributary, which refuses them"
		c.Fix = "export no_proxy=localhost,127.0.0.0/8,::1"
	default:
		c.Found += ": programs started here use Tributary"
	}
	return append([]Check{c}, exceptions(f)...)
}

// exceptions checks the format of no_proxy: there is no standard, and some programs silently ignore forms that others
// accept.
func exceptions(f *Facts) []Check {
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		list, c := f.Env[name], Check{Name: "no_proxy", Verdict: Warn}
		switch {
		case list == "":
			continue
		case strings.Contains(list, "://"):
			c.Found = name + " has an item with a scheme: programs compare only host names"
			c.Fix = "export " + name + "=" + quote(withoutSchemes(list))
		case strings.Contains(list, "*.") && !strings.HasPrefix(list, "*,"):
			c.Found = name + " has an item with *: most programs expect .example.com for all subdomains of example.com"
			c.Fix = "export " + name + "=" + quote(strings.ReplaceAll(list, "*.", "."))
		case !strings.Contains(list, ",") && len(strings.Fields(list)) > 1:
			c.Found = name + " does not separate its items with commas, which most programs expect"
			c.Fix = "export " + name + "=" + strings.Join(strings.Fields(list), ",")
		case f.Env["no_proxy"] != "" && f.Env["NO_PROXY"] != "" && f.Env["no_proxy"] != f.Env["NO_PROXY"]:
			c.Found = "no_proxy and NO_PROXY differ: some programs read one and some the other"
			c.Fix = `export NO_PROXY="$no_proxy"`
		default:
			continue
		}
		return []Check{c}
	}
	return nil
}

func withoutSchemes(list string) string {
	items := strings.Split(list, ",")
	for i, item := range items {
		if _, rest, ok := strings.Cut(item, "://"); ok {
			items[i], _, _ = strings.Cut(rest, "/")
		}
	}
	return strings.Join(items, ",")
}

// others returns the variables that name a proxy other than this one.
func others(getenv func(string) string, own []netip.AddrPort) (names []string) {
	for _, n := range proxyVariables {
		if v := getenv(n); v != "" && !isOwn(v, own) {
			names = append(names, n)
		}
	}
	return names
}

// proxyVariables are those that programs read, in the order in which most choose one for http. https_proxy may stand
// alone.
var proxyVariables = []string{"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"}

// proxyVariable returns the variable that names a proxy for http, as most programs choose it.
func proxyVariable(getenv func(string) string) (name, proxy string) {
	for _, n := range proxyVariables {
		if v := getenv(n); v != "" {
			return n, v
		}
	}
	return "", ""
}

// Upstream returns an error if the environment names a proxy other than the one at the own addresses. Tributary
// connects to servers itself; if that proxy is the only way out, every download would fail without an apparent reason.
// The error shows how to run the command without it.
func Upstream(getenv func(string) string, command string, own ...netip.AddrPort) error {
	name, proxy := proxyVariable(getenv)
	if proxy == "" || isOwn(proxy, own) {
		return nil
	}
	return fmt.Errorf("%s=%s in the environment names another proxy, which Tributary does not use: it connects to "+
		"servers directly; if that is possible here, run: env -u %s tributary %s", name, withoutUser(proxy),
		strings.Join(others(getenv, own), " -u "), command)
}

// isOwn reports whether a proxy URL is one of the addresses; all loopback addresses are equivalent.
func isOwn(proxy string, own []netip.AddrPort) bool {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return false
	}
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	for _, o := range own {
		if u.Port() == fmt.Sprint(o.Port()) && (host == "localhost" ||
			err == nil && (a.IsLoopback() || a == o.Addr())) {
			return true
		}
	}
	return false
}

func withoutUser(proxy string) string {
	if i := strings.LastIndexByte(proxy, '@'); i >= 0 {
		scheme, _, _ := strings.Cut(proxy, "://")
		return scheme + "://..." + proxy[i:]
	}
	return proxy
}

func coversLoopback(list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(item) {
		case "*", "localhost", "127.0.0.1", "127.0.0.0/8":
			return true
		}
	}
	return false
}
