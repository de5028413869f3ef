package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
)

func (a *app) linksCommand() *cobra.Command {
	var flags linkFlags
	var js bool
	c := &cobra.Command{
		Use:   "links",
		Short: "List the network interfaces and explain why each is used or not",
		Long: `List every network interface with its kind, state, addresses, gateways and DNS servers, and explain why Tributary uses
it or not. "tributary serve" with the same settings would choose the same links. Nothing is sent over the network.`,
		Example: `  tributary links
  tributary links --link tun0      # what serve would do with this flag
  tributary links --json | jq -r '.[] | select(.used) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.config(cmd, a)
			if err != nil {
				return usageError{err}
			}
			rows, err := a.linkRows(cfg)
			if err != nil {
				return err
			}
			if js {
				return printJSON(a.stdout, rows)
			}
			if err := printLinks(a.stdout, rows); err != nil {
				return err
			}
			a.usedConfig(a.configFile(flags.file))
			return nil
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&js, "json", false, "print JSON")
	return c
}

// linkFlags are the flags of serve that choose the links.
type linkFlags struct {
	file, vpn string
	links     []string
}

func (f *linkFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "config", "", "read settings from `FILE`, as serve does")
	c.Flags().StringSliceVar(&f.links, "link", nil, "use only the link `NAME`; repeatable")
	c.Flags().StringVar(&f.vpn, "vpn", config.VPNFollow, vpnHelp)
}

func (f *linkFlags) config(c *cobra.Command, a *app) (config.Config, error) {
	cfg, err := config.Load(a.configFile(f.file), a.getenv)
	if err != nil {
		return config.Config{}, err
	}
	f.lay(c, cfg)
	return cfg.Config, cfg.Check()
}

// lay applies the given flags to cfg.
func (f *linkFlags) lay(c *cobra.Command, cfg *config.File) {
	if c.Flags().Changed("link") {
		cfg.Links = f.links
		cfg.Override("links", "link")
	}
	if c.Flags().Changed("vpn") {
		cfg.VPN = f.vpn
		cfg.Override("vpn", "vpn")
	}
}

// linkRow is one interface.
type linkRow struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	State     string   `json:"state"`
	Used      bool     `json:"used"`
	Reason    string   `json:"reason"`
	Addresses []string `json:"addresses"`
	Gateways  []string `json:"gateways"`
	DNS       []string `json:"dns"`
	DNSFrom   string   `json:"dns_from,omitempty"`
	DNSError  string   `json:"dns_error,omitempty"`
	Via       string   `json:"via,omitempty"` // upstream proxy, which resolves names
	Metered   bool     `json:"metered"`
	Trusted   bool     `json:"trusted"`
	Metric    *int     `json:"metric"` // null = the system itself would not choose the link
}

func (a *app) linkRows(cfg config.Config) ([]linkRow, error) {
	all, resolver, err := a.candidates(cfg)
	if err != nil {
		return nil, err
	}
	rows := []linkRow{}
	for _, c := range all {
		r := linkRow{
			Name:      c.Link.Name,
			Kind:      c.Link.Kind,
			State:     c.State,
			Used:      c.Use,
			Reason:    c.Reason,
			Metered:   c.Link.Terms.Metered,
			Trusted:   cfg.Trusts(c.Link.Name),
			Addresses: text(c.Link.Addrs),
			Gateways:  text(c.Gateways),
			DNS:       []string{},
		}
		if c.Use && c.Link.Metric < link.Unranked {
			r.Metric = &c.Link.Metric
		}
		if c.Link.Via != "" {
			r.Via = c.Link.Via
		} else if c.Use {
			s, err := resolver.Servers(c.Link)
			for _, server := range s.Addrs {
				r.DNS = append(r.DNS, server.Addr().String())
			}
			if r.DNSFrom = s.From; err != nil {
				r.DNSError = err.Error()
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func text(addrs []netip.Addr) []string {
	all := []string{}
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return all
}

// printLinks prints the links as a table, used ones first, and their reasons below it, since these are sentences.
func printLinks(w io.Writer, rows []linkRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LINK\tUSED\tKIND\tSTATE\tADDRESSES\tGATEWAY\tDNS")
	used := 0
	for _, r := range rows {
		yes, kind := "no", r.Kind
		if r.Used {
			yes = "yes"
			used++
		}
		if r.Metered {
			kind += ", metered"
		}
		if !r.Trusted {
			kind += ", not trusted"
		}
		dns := list(r.DNS)
		switch {
		case r.DNSError != "":
			dns = "none"
		case r.Via != "":
			dns = "upstream"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, yes, kind, or(r.State), list(r.Addresses),
			list(r.Gateways), dns)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		from := ""
		if len(r.DNS) > 0 {
			from = "; DNS from " + r.DNSFrom
		}
		fmt.Fprintf(w, "%s: %s%s\n", r.Name, r.Reason, from)
		if r.DNSError != "" {
			fmt.Fprintf(w, "  %s\n", r.DNSError)
		}
	}
	var err error
	switch used {
	case 0:
		_, err = fmt.Fprint(w,
			"\nNo link can be used. Fix one of the problems above, or name a link: tributary serve --link NAME. "+
				"For details, run tributary doctor.\n")
	case 1:
		_, err = fmt.Fprint(w,
			"\n1 link is used. Downloads become faster with two or more. For details, run tributary doctor.\n")
	}
	return err
}

func list(all []string) string { return or(strings.Join(all, ", ")) }

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
