package appbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/allowance"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// Version is the version of the protocol. It changes when an older program or app would misunderstand a newer one;
// unknown fields and types of messages are ignored.
const Version = 1

// Limits on the messages of an app.
const (
	maxLine  = 256 << 10 // bytes of a message
	maxLinks = 32
	maxAddrs = 64 // of a link, and of a name
	maxApps  = 4096
)

// The connections: two, and one more for each order.
const (
	channelEvents = "events"
	channelBind   = "bind"
	channelFetch  = "fetch"
)

// hello is the first line on a connection, on the one for events in both directions.
type hello struct {
	Type    string `json:"type"` // "hello"
	Version int    `json:"version"`
	Channel string `json:"channel,omitempty"`
	ID      uint64 `json:"id,omitempty"` // of the order
}

// inMessage is a message of the app.
type inMessage struct {
	Type     string    `json:"type"` // "links", "resolved", "owned", "fetch", "pair", "forget", "gateway", "stop"
	Links    []network `json:"links"`
	Accounts []account `json:"accounts"` // accounts with a limit; links name them
	Cellular string    `json:"cellular"` // account of the mobile data that comes up if it is wanted
	Apps     apps      `json:"apps"`     // apps that may use metered links

	ID    uint64       `json:"id"` // of the question, or of the order
	Addrs []netip.Addr `json:"addrs"`
	Error string       `json:"error"` // "" = none; notFound
	UID   *int64       `json:"uid"`   // of an app; nil = not known

	Token   string `json:"token"`   // of the gateway: a secret
	Link    string `json:"link"`    // an invitation: a secret
	Address string `json:"address"` // of a relay
}

// notFound is the Error of an answer about a name that does not exist.
const notFound = "not_found"

// network is a link as the app describes it.
type network struct {
	Name    string       `json:"name"`   // of the interface
	Handle  uint64       `json:"handle"` // the app's number for it
	Kind    string       `json:"kind"`   // "wifi", "cellular", "ethernet", ...
	Addrs   []string     `json:"addrs"`  // "address/bits"
	DNS     []netip.Addr `json:"dns"`    // for people to read: the app resolves names
	Metered bool         `json:"metered"`
	// account that its bytes count against, with those of other links; "" = name
	Account   string `json:"account"`
	NAT64     string `json:"nat64"`     // "prefix/bits" for reaching IPv4 addresses; "" = none
	Validated bool   `json:"validated"` // leads to the internet, not to a login page
}

// account is a limit on what the links of an account carry together.
type account struct {
	Name    string `json:"name"`
	Monthly int64  `json:"monthly_bytes"` // 0 = no limit
	Daily   int64  `json:"daily_bytes"`   // 0 = no limit
	First   int    `json:"first_day"`     // of the month, 1 to 31; 0 = 1
}

// outMessage is a message to the app.
type outMessage struct {
	Type     string `json:"type"` // "resolve", "owner", "want", "status", "paired", "forgotten"
	ID       uint64 `json:"id,omitempty"`
	Handle   uint64 `json:"handle,omitempty"`
	Name     string `json:"name,omitempty"`
	Cellular *bool  `json:"cellular,omitempty"`
	Status   any    `json:"status,omitempty"`
	Local    string `json:"local,omitempty"`  // "address:port" of the app's socket
	Remote   string `json:"remote,omitempty"` // "address:port" that the socket is connected to

	Address string `json:"address,omitempty"` // of a relay
	Code    Code   `json:"code,omitempty"`    // why the relay was not paired or forgotten
	Error   string `json:"error,omitempty"`   // the same in English, for a log
}

// line returns a message as it is sent. Its error contains no part of the message.
func (m outMessage) line() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil || len(b) >= maxLine {
		return nil, errors.Join(errors.New("the message is too long"), err)
	}
	return append(b, '\n'), nil
}

// parse reads one line of the app.
func parse(line []byte) (inMessage, error) {
	var m inMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return inMessage{}, fmt.Errorf("a message is not a JSON object of the protocol: %w", err)
	}
	switch {
	case m.Type == "":
		return inMessage{}, errors.New("a message has no type")
	case len(m.Apps.UIDs) > maxApps:
		return inMessage{}, fmt.Errorf("more than %d apps", maxApps)
	case len(m.Links) > maxLinks || len(m.Accounts) > maxLinks:
		return inMessage{}, fmt.Errorf("more than %d links or accounts", maxLinks)
	}
	for _, a := range m.Accounts { // a limit that is not understood must not be ignored
		if a.Name == "" || len(a.Name) > longestAccount || a.Monthly < 0 || a.Daily < 0 || a.First < 0 || a.First > 31 {
			return inMessage{}, fmt.Errorf("account %.64q: %d bytes a month from day %d, %d a day", a.Name, a.Monthly,
				a.First, a.Daily)
		}
	}
	m.Addrs = m.Addrs[:min(len(m.Addrs), maxAddrs)] // the owner of the name decides how many there are
	return m, nil
}

// limits returns the limits of accounts by name.
func (m inMessage) limits() map[string]allowance.Limit {
	all := map[string]allowance.Limit{}
	for _, a := range m.Accounts {
		if a.Monthly > 0 || a.Daily > 0 {
			all[a.Name] = allowance.Limit{Month: a.Monthly, Day: a.Daily, First: a.First}
		}
	}
	return all
}

// usable returns the links that lead out, in the app's order, which is its preference. err joins the problems of
// malformed links.
func usable(all []network) (links []link.Link, err error) {
	names := map[string]bool{}
	for i, n := range all {
		l, bad := n.link(i)
		switch {
		case bad != nil:
			err = errors.Join(err, bad)
		case names[n.Name]:
			err = errors.Join(err, fmt.Errorf("link %q appears twice", n.Name))
		case n.Validated && len(l.Addrs) > 0:
			names[n.Name] = true
			links = append(links, l)
		}
	}
	return links, err
}

const longestAccount = 64 // bytes

// longestName is the limit of the kernel (IFNAMSIZ - 1), in bytes.
const longestName = 15

func (n network) link(rank int) (link.Link, error) {
	if n.Name == "" || n.Name == loopback || len(n.Name) > longestName ||
		strings.ContainsFunc(n.Name, func(c rune) bool { return c <= ' ' || c > '~' || c == '/' }) {
		return link.Link{}, fmt.Errorf("%q is not a valid name of a link", n.Name)
	}
	if len(n.Addrs) > maxAddrs || len(n.DNS) > maxAddrs {
		return link.Link{}, fmt.Errorf("link %s has more than %d addresses", n.Name, maxAddrs)
	}
	if len(n.Account) > longestAccount {
		return link.Link{}, fmt.Errorf("link %s: the name of its account has %d bytes", n.Name, len(n.Account))
	}
	l := link.Link{
		Name:   n.Name,
		Kind:   n.Kind,
		Metric: rank,
		Handle: n.Handle,
		Terms:  policy.Terms{Metered: n.Metered, Account: n.Account},
	}
	for _, s := range n.Addrs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return link.Link{}, fmt.Errorf("link %s: %q is not an address with a prefix length", n.Name, s)
		}
		if a := p.Addr(); a.IsLinkLocalUnicast() || a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() {
			continue // leads nowhere
		}
		l.Addrs = append(l.Addrs, p.Addr())
		l.Prefixes = append(l.Prefixes, p.Masked())
	}
	if n.NAT64 != "" {
		p, err := netip.ParsePrefix(n.NAT64)
		if err != nil || !link.IsNAT64(p) {
			return link.Link{}, fmt.Errorf("link %s: %q is not a prefix for NAT64", n.Name, n.NAT64)
		}
		l.NAT64 = p
	}
	for _, a := range n.DNS {
		if a.IsValid() {
			l.DNS = append(l.DNS, netip.AddrPortFrom(a, 53))
		}
	}
	l.Network = discover.Identify(l, nil, l.DNS)
	return l, nil
}
