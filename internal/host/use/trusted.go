package use

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/host/trust"
)

// trusted returns an error if the program's own settings limit which servers it accepts, or prove to servers who the
// user is: the gateway verifies servers with the system's certificates, and has no others.
func (p *plan) trusted() error {
	all := slices.DeleteFunc(trust.Limits(p.program, p.Getenv, p.Root),
		func(l trust.Limit) bool { return !p.concerns(l) })
	if roots, err := trust.SystemRoots(); err == nil {
		all = roots.Narrower(all)
	}
	if p.Force {
		for _, l := range all {
			p.note("%s no longer keeps to %s: the gateway decides which servers it accepts", p.program, l)
		}
		return nil
	}
	if len(all) == 0 {
		return nil
	}
	if l := all[0]; l.Client {
		return fmt.Errorf("%s shows servers a client certificate (%s), which the gateway does not have: remove that setting, or use --force "+
			"if the servers behind the gateway do not ask for it", p.program, l)
	}
	return fmt.Errorf("%s accepts only servers that %s allows, but the gateway accepts all that this system trusts: remove that setting, or "+
		"use --force if %[1]s may accept them, too", p.program, all[0])
}

// concerns reports whether a setting is for a server that the program is to reach through the gateway. Registries of
// images have settings of their own.
func (p *plan) concerns(l trust.Limit) bool {
	_, rest, ok := strings.Cut(l.File+"/", "/certs.d/")
	registry, _, _ := strings.Cut(rest, "/")
	return !ok || slices.Contains(p.hosts, registry)
}
