package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/host/privilege"
	"github.com/tributary-http/tributary/internal/host/redirect"
	"github.com/tributary-http/tributary/internal/net/link"
)

// firewallTime limits the duration of a firewall change, which may have to wait for others.
const firewallTime = 15 * time.Second

func (a *app) redirectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "redirect",
		Short: "Redirect connections of programs without proxy support to the proxy (root)",
		Long: `Redirect the TCP connections of this machine's programs to the running proxy, with firewall rules (nftables, or iptables
where nft is missing) for IPv4 and IPv6. Programs do not need proxy support. Downloads over plain http use all links.
Everything else on these ports passes through unchanged, each connection over one link.

With --https, port 443 is redirected too. These connections stay encrypted, so their downloads cannot be divided.
Connections of the programs that spread_programs lists in the configuration are spread over the links; those of other
programs stay on one link. QUIC (UDP) bypasses the redirect unless you block it with --no-quic.

The rules are removed when the proxy ends, even if it crashes. "redirect off" removes them at any time.`,
		Example: `  sudo tributary redirect on
  sudo tributary redirect on --port 80 --port 8000 --user alice --user 2000-2999
  sudo tributary redirect on --https --no-quic
  sudo tributary redirect status
  sudo tributary redirect off`,
	}
	c.AddCommand(a.redirectOn(), a.redirectOff(), a.redirectStatus())
	return c
}

// redirectFlags are the flags of redirect on.
type redirectFlags struct {
	file, socket  string
	ports         []uint
	users, except []string
	https, noQUIC bool
	foreground    bool
	report        int
}

func (a *app) redirectOn() *cobra.Command {
	var f redirectFlags
	c := &cobra.Command{
		Use:   "on",
		Short: "Redirect connections until the proxy ends or you run redirect off",
		Long: `Redirect connections to the given ports to the running proxy. A background process removes the rules as soon as the proxy
ends or crashes. With --foreground, this process does that itself.

The proxy's own connections are exempt, and so are those of all other programs that run as the proxy's user. Run the
proxy as a service with its own user, or your programs are not redirected. To redirect them anyway, name the user with
--user; the proxy then needs CAP_NET_ADMIN, to mark its own connections. Connections to loopback, link-local and
multicast addresses are never redirected.`,
		Example: `  sudo tributary redirect on
  sudo tributary redirect on --user alice
  sudo tributary redirect on --user 10000-19999 --except 10123   # the user ID of an Android app`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := f.rules()
			if err != nil {
				return usageError{err}
			}
			if err := needRoot("changing the firewall", "redirect on"); err != nil {
				return err
			}
			if !f.foreground {
				return a.keepInBackground(cmd.Context())
			}
			say := func(text string) { fmt.Fprintln(a.stdout, text) }
			if f.report > 0 {
				pipe := os.NewFile(uintptr(f.report), "report")
				say = func(text string) {
					_ = json.NewEncoder(pipe).Encode(report{Text: text})
					pipe.Close()
				}
				defer func() {
					if err != nil {
						// fails if say closed it
						_ = json.NewEncoder(pipe).Encode(report{Error: err.Error(), Code: exitCode(err)})
					}
				}()
			}
			err = untilSignaled(cmd.Context(), 0, func(os.Signal) {}, func(ctx context.Context) error {
				return a.keep(ctx, f, rules, say)
			})
			return err
		},
	}
	c.Flags().UintSliceVar(&f.ports, "port", []uint{80}, "redirect connections to this `PORT`; repeatable")
	c.Flags().BoolVar(&f.https, "https", false, "redirect port 443 too; connections are never decrypted")
	c.Flags().BoolVar(&f.noQUIC, "no-quic", false,
		"with --https: block QUIC (UDP port 443), so that programs fall back to TCP")
	c.Flags().StringSliceVar(&f.users, "user", nil,
		"redirect only connections of this `USER`: a name, a user ID, or a range like 10000-19999; repeatable")
	c.Flags().StringSliceVar(&f.except, "except", nil, "do not redirect connections of this `USER`; repeatable")
	c.Flags().BoolVar(&f.foreground, "foreground", false,
		"keep running; remove the rules when the proxy ends or on a signal")
	c.Flags().IntVar(&f.report, "report", 0, "")
	_ = c.Flags().MarkHidden("report")
	f.registerSocket(c)
	return c
}

func (f *redirectFlags) registerSocket(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "config", "", "read settings from `FILE`, as serve does")
	c.Flags().StringVar(&f.socket, "control", "", "ask the proxy over the socket at `PATH`")
}

func (f *redirectFlags) rules() (redirect.Rules, error) {
	r := redirect.Rules{Leave: link.NoDestinations(), LeaveAround: link.PrivateNetworks()}
	for _, p := range f.ports {
		if p == 0 || p > 65535 {
			return r, fmt.Errorf("--port %d: want a port from 1 to 65535", p)
		}
		r.Ports = append(r.Ports, uint16(p))
	}
	if f.https && !slices.Contains(r.Ports, 443) {
		r.Ports = append(r.Ports, 443)
	}
	if r.NoQUIC = f.noQUIC; r.NoQUIC && !slices.Contains(r.Ports, 443) {
		return r, errors.New("--no-quic needs --https: programs that fall back to TCP would not be redirected otherwise")
	}
	var err error
	if r.Users, err = parseUsers("--user", f.users); err == nil {
		r.Except, err = parseUsers("--except", f.except)
	}
	return r, err
}

func parseUsers(flag string, names []string) (all []redirect.Users, err error) {
	for _, name := range names {
		text := name
		if u, err := user.Lookup(name); err == nil {
			text = u.Uid
		}
		u, err := redirect.ParseUsers(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w, and there is no user with that name", flag, err)
		}
		all = append(all, u)
	}
	return all, nil
}

// needRoot returns an error that names the next step if the caller is not root. what is the operation that needs root.
func needRoot(what, command string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w; run %s", what, fs.ErrPermission, privilege.Sudo(command))
}

// describe returns a description of the redirected connections.
func describe(in redirect.Installed, r redirect.Rules) string {
	ports, users := make([]string, len(r.Ports)), make([]string, len(r.Users))
	for i, p := range r.Ports {
		ports[i] = strconv.Itoa(int(p))
	}
	for i, u := range r.Users {
		users[i] = u.String()
	}
	whose := "everybody"
	if len(users) > 0 {
		whose = "user " + strings.Join(users, ", ")
	}
	text := fmt.Sprintf("redirected by %s: TCP port %s of %s (%s)", in.By, strings.Join(ports, ", "), whose,
		overs(in.V6))
	if r.NoQUIC {
		text += "; UDP port 443 is rejected"
	}
	return text
}

// overs returns the names of the address families.
func overs(v6 bool) string {
	if v6 {
		return "IPv4 and IPv6"
	}
	return "IPv4"
}

func (a *app) redirectOff() *cobra.Command {
	var f redirectFlags
	c := &cobra.Command{
		Use:   "off",
		Short: "Stop redirecting connections, whether or not the proxy runs",
		Long: `Remove the firewall rules and stop the background process of "redirect on". Connections that were already redirected stay
open as long as the proxy runs.`,
		Example: `  sudo tributary redirect off`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needRoot("changing the firewall", "redirect off"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), firewallTime)
			defer cancel()
			before, err := redirect.Find(ctx)
			if err == nil {
				err = redirect.Off(ctx)
			}
			if err != nil {
				return err
			}
			if client, _, err := a.reach(ctx, f.file, f.socket); err == nil {
				defer client.Close()
				_ = client.Release(ctx) // an error is harmless: the rules are gone
			}
			if before.By == "" {
				_, err = fmt.Fprintln(a.stdout, "nothing was redirected")
			} else {
				_, err = fmt.Fprintf(a.stdout, "connections are no longer redirected; removed the rules from %s\n",
					before.By)
			}
			return err
		},
	}
	f.registerSocket(c)
	return c
}

// redirectState is the output of redirect status.
type redirectState struct {
	Redirected bool   `json:"redirected"`
	By         string `json:"by,omitempty"`
	Port       uint16 `json:"port,omitempty"`
	IPv6       bool   `json:"ipv6"`
	Proxy      int    `json:"proxy_pid,omitempty"`
}

func (a *app) redirectStatus() *cobra.Command {
	var f redirectFlags
	var js bool
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show whether connections are redirected and whether the proxy runs",
		Long:    "Show whether connections are redirected, and whether the proxy that serves them is running.",
		Example: `  sudo tributary redirect status --json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needRoot("reading the firewall rules", "redirect status"); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), firewallTime)
			defer cancel()
			in, err := redirect.Find(ctx)
			if err != nil {
				return err
			}
			s := redirectState{Redirected: in.By != "", By: in.By, Port: in.To, IPv6: in.V6}
			if client, now, err := a.reach(ctx, f.file, f.socket); err == nil {
				s.Proxy = now.PID
				client.Close()
			}
			if js {
				return printJSON(a.stdout, s)
			}
			return printRedirect(a.stdout, s)
		},
	}
	c.Flags().BoolVar(&js, "json", false, "print JSON")
	f.registerSocket(c)
	return c
}

func printRedirect(w io.Writer, s redirectState) error {
	var err error
	switch {
	case !s.Redirected:
		_, err = fmt.Fprintln(w, "nothing is redirected; to start:", privilege.Sudo("redirect on"))
	case s.Proxy == 0:
		_, err = fmt.Fprintf(w, "redirected by %s to port %d (%s), but the proxy is not running; to stop: %s\n", s.By,
			s.Port, overs(s.IPv6), privilege.Sudo("redirect off"))
	default:
		_, err = fmt.Fprintf(w, "redirected by %s to port %d (%s), served by process %d\n", s.By, s.Port, overs(s.IPv6),
			s.Proxy)
	}
	return err
}
