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

	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/redirect"
)

// firewallTime bounds a change of the firewall, which may have to wait for others.
const firewallTime = 15 * time.Second

func (a *app) redirectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "redirect",
		Short: "Send programs without proxy support through the proxy (root)",
		Long: `Send TCP connections of this machine's programs through the running proxy, even of those without proxy support, by
rules of the firewall (nftables, else iptables), IPv4 and IPv6. Downloads over plain http become as fast as with the
proxy set; everything else on these ports passes through untouched, each connection over one link.

With --https port 443 is redirected, too. Its connections are encrypted and stay so: they cannot be divided. Those of
programs that spread_programs in the configuration names are spread over the links, all others stay together. QUIC (UDP)
bypasses the redirect unless --no-quic rejects it.

The rules go when the proxy ends, however it ends, and by "redirect off", proxy or not.

` + exitCodes,
		Example: `  sudo tributary redirect on
  sudo tributary redirect on --port 80 --port 8000 --user alice --user 2000-2999
  sudo tributary redirect on --https --no-quic
  sudo tributary redirect status
  sudo tributary redirect off`,
	}
	c.AddCommand(a.redirectOn(), a.redirectOff(), a.redirectStatus())
	return c
}

// redirectFlags are those of redirect on.
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
		Short: "Redirect connections until the proxy ends, or redirect off",
		Long: `Redirect connections to the given ports to the running proxy. A process of its own stays behind, which removes the
rules as soon as the proxy ends or dies; with --foreground it is this one.

The proxy's own connections are exempt by a mark, which takes CAP_NET_ADMIN, and all of its user's: run the proxy as a
service under a user of its own, else that user's programs are not redirected. --user with that user's name redirects them
all the same, if the proxy can mark its connections. Loopback, link-local and multicast addresses are left alone.

` + exitCodes,
		Example: `  sudo tributary redirect on
  sudo tributary redirect on --user alice
  sudo tributary redirect on --user 10000-19999 --except 10123   # an app's number on Android`,
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
						_ = json.NewEncoder(pipe).Encode(report{Error: err.Error(), Code: exitCode(err)}) // closed if it was said
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
	c.Flags().BoolVar(&f.https, "https", false, "redirect port 443, too: connections are spread over links, never decrypted")
	c.Flags().BoolVar(&f.noQUIC, "no-quic", false, "with --https: reject UDP port 443, so that programs use TCP, which can be redirected")
	c.Flags().StringSliceVar(&f.users, "user", nil, "redirect those of this `USER` only: a name, a number, or a range like 10000-19999; repeatable")
	c.Flags().StringSliceVar(&f.except, "except", nil, "but not those of this `USER`; repeatable")
	c.Flags().BoolVar(&f.foreground, "foreground", false, "stay until the proxy ends or a signal comes, then remove the rules")
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
			return r, fmt.Errorf("--port %d: ports are numbers from 1 to 65535", p)
		}
		r.Ports = append(r.Ports, uint16(p))
	}
	if f.https && !slices.Contains(r.Ports, 443) {
		r.Ports = append(r.Ports, 443)
	}
	if r.NoQUIC = f.noQUIC; r.NoQUIC && !slices.Contains(r.Ports, 443) {
		return r, errors.New("--no-quic needs --https: without it programs that fall back to TCP gain nothing")
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
			return nil, fmt.Errorf("%s: %w, and no user has that name", flag, err)
		}
		all = append(all, u)
	}
	return all, nil
}

// needRoot returns an error with a hint if the caller is not root, whom what takes.
func needRoot(what, command string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: sudo tributary %s", what, fs.ErrPermission, command)
}

// describe says which connections are redirected.
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
	text := fmt.Sprintf("redirected by %s: TCP port %s of %s (%s)", in.By, strings.Join(ports, ", "), whose, overs(in.V6))
	if r.NoQUIC {
		text += "; UDP port 443 is rejected"
	}
	return text
}

// overs names the families.
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
		Short: "Redirect nothing any more, whether or not the proxy runs",
		Long: `Remove the rules that redirect connections, and end the process that kept them. Redirected connections stay open as long
as the proxy runs.

` + exitCodes,
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
				_ = client.Release(ctx) // who keeps no rules harms nobody
			}
			if before.By == "" {
				_, err = fmt.Fprintln(a.stdout, "nothing was redirected")
			} else {
				_, err = fmt.Fprintf(a.stdout, "nothing is redirected any more: the rules in %s are gone\n", before.By)
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
		Short:   "Say whether connections are redirected, and whether the proxy runs",
		Long:    "Say whether connections are redirected, and whether the proxy that should serve them is running.\n\n" + exitCodes,
		Example: `  sudo tributary redirect status --json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needRoot("changing the firewall", "redirect status"); err != nil {
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
		_, err = fmt.Fprintln(w, "nothing is redirected: sudo tributary redirect on")
	case s.Proxy == 0:
		_, err = fmt.Fprintf(w, "redirected by %s to port %d (%s), but no proxy was found there: sudo tributary redirect off\n", s.By, s.Port, overs(s.IPv6))
	default:
		_, err = fmt.Fprintf(w, "redirected by %s to port %d (%s), where process %d serves\n", s.By, s.Port, overs(s.IPv6), s.Proxy)
	}
	return err
}
