package doctor

import (
	"fmt"
	"strings"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/mptcp"
)

// multipath checks a proxy that is reached by MPTCP (url in [relay]): it has every link only if the kernel has an endpoint on
// each.
func multipath(f *Facts) []Check {
	if f.Multipath == nil {
		return nil
	}
	var links []link.Link
	for _, l := range f.Used() {
		if l.Link.Via == "" {
			links = append(links, l.Link)
		}
	}
	var all []mptcp.Interface
	for _, l := range link.Affordable(links) {
		all = append(all, mptcp.Interface{Name: l.Name, Addrs: l.Addrs})
	}
	s := f.Multipath
	c := Check{Name: "mptcp", Verdict: OK, Found: fmt.Sprintf("the kernel may use %d links for a connection to the proxy", len(all))}
	missing := s.Missing(all)
	switch err := s.Check(all); {
	case f.MultipathError != nil:
		c.Verdict, c.Found = Skipped, f.MultipathError.Error()
	case !s.Known:
		c.Verdict, c.Found = Warn, "this kernel does not support MPTCP: tunnels to the proxy use one link"
		c.Fix = "use a relay instead: tributary relay --help"
	case !s.Enabled:
		c.Verdict, c.Found, c.Fix = Warn, "MPTCP is disabled: tunnels to the proxy use one link", "sysctl net.mptcp.enabled=1"
	case err != nil:
		c.Verdict, c.Found = Fail, "tunnels do not use the proxy: "+err.Error()
	case len(missing) > 0:
		c.Verdict = Warn
		var names, commands []string
		for _, l := range missing {
			names = append(names, l.Name)
			for _, a := range l.Addrs {
				commands = append(commands, fmt.Sprintf("ip mptcp endpoint add %v dev %s subflow", a, quote(l.Name)))
			}
		}
		c.Found = "the kernel has no MPTCP endpoint on " + strings.Join(names, ", ") + ", so tunnels to the proxy do not use these links"
		c.Fix = strings.Join(commands, " && ")
	case s.Limit < len(all)-1:
		c.Verdict = Warn
		c.Found = fmt.Sprintf("a connection may use %d links in addition to the first one, but there are %d", s.Limit, len(all)-1)
		c.Fix = fmt.Sprintf("ip mptcp limits set subflow %d", len(all)-1)
	}
	return []Check{c}
}
