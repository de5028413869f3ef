package mptcp

import (
	"fmt"
	"net/netip"
	"slices"
)

// Settings are the kernel's MPTCP settings.
type Settings struct {
	Known     bool // the kernel has MPTCP
	Enabled   bool // net.mptcp.enabled
	Limit     int  // most subflows of a connection in addition to its first one
	Endpoints []Endpoint
}

// Endpoint is an address of this machine that the kernel may use for subflows (ip-mptcp(8)).
type Endpoint struct {
	ID        uint8
	Addr      netip.Addr
	Interface string // "" = the interface that has Addr
	Subflow   bool   // connections from this machine use it
}

// Interface is a link, as far as MPTCP is concerned.
type Interface struct {
	Name  string
	Addrs []netip.Addr
}

// Check returns an error if the kernel would let a connection use links other than the allowed ones.
func (s Settings) Check(allowed []Interface) error {
	for _, e := range s.Endpoints {
		if e.Subflow && e.of(allowed) == "" {
			return fmt.Errorf("the kernel has an MPTCP endpoint, %s, on a link that must not carry tunnels: remove it with ip mptcp endpoint delete id %d", e.where(), e.ID)
		}
	}
	return nil
}

// Missing returns the links that no endpoint makes the kernel use.
func (s Settings) Missing(links []Interface) (all []Interface) {
	for _, l := range links {
		if !slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return e.Subflow && e.of([]Interface{l}) != "" }) {
			all = append(all, l)
		}
	}
	return all
}

// of returns the link that an endpoint belongs to, "" if it does not belong to any of them.
func (e Endpoint) of(links []Interface) string {
	for _, l := range links {
		if e.Interface == l.Name || e.Interface == "" && slices.Contains(l.Addrs, e.Addr) {
			return l.Name
		}
	}
	return ""
}

func (e Endpoint) where() string {
	if e.Interface == "" {
		return e.Addr.String()
	}
	return e.Addr.String() + " of " + e.Interface
}
