package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/relay"
)

func (a *app) relayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "relay",
		Short: "Carry tunnels over all links by a server of your own",
		Long: `A tunnel (https, ssh, git push) has one connection, so one link. With a second end on a server that you rent or have at
home, it runs over every link, and survives the death of any. docs/RELAY.md says what that server must be trusted with.

With ssh to the server, one command does it all: tributary relay setup root@HOST. Else:

  1. on the server:  tributary relay serve --listen :443
  2. on the server:  tributary relay pair HOST:443        prints a link that is valid once
  3. here:           tributary relay join LINK            then tributary serve

` + exitCodes,
		Example: `  tributary relay setup root@relay.example.com
  tributary relay serve --listen :443
  tributary relay pair relay.example.com:443
  tributary relay join -`,
	}
	c.AddCommand(a.relayServe(), a.relayPair(), a.relayJoin(), a.relayClients(), a.relayLimit(), a.relayRemove(), a.relaySetup(), a.relayUndo())
	return c
}

func (a *app) relayServe() *cobra.Command {
	var listen, level, size, pages string
	var drain time.Duration
	var allow []string
	c := &cobra.Command{
		Use:   "serve [--listen ADDRESS]",
		Short: "Be the relay of the clients that were paired",
		Long: `Connect the tunnels of paired clients until SIGTERM or SIGINT. Private networks, this machine, metadata of clouds and
port 25 are not connected to. Without --listen it takes the socket that systemd has opened. Started by root, it runs as the owner
of its state folder.

At the end new tunnels are refused, and clients send them over one link; those that are open may continue for --drain. A second
signal ends at once. Keys and limits that change hold within seconds, at SIGHUP at once.

` + exitCodes,
		Example: `  tributary relay serve --listen :443
  tributary relay serve --listen 203.0.113.5:443 --allow-destinations 10.0.0.0/24
  tributary relay serve --listen :443 --metrics 127.0.0.1:9092`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := config.Default()
			cfg.AllowDestinations, cfg.LogLevel = allow, level
			if err := cfg.Validate(); err != nil {
				return usageError{err}
			}
			var memory config.Bytes
			if err := memory.UnmarshalText([]byte(size)); err != nil {
				return usageError{fmt.Errorf("--memory: %w", err)}
			}
			if drain < 0 {
				return usageError{errors.New("--drain: less than 0")}
			}
			if at, err := netip.ParseAddrPort(pages); pages != "" && (err != nil || !at.Addr().IsLoopback()) {
				return usageError{fmt.Errorf("--metrics: %q is not a loopback address with a port, like 127.0.0.1:9092", pages)}
			}
			if err := relayOwner(unix.CAP_NET_BIND_SERVICE); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: cfg.Level()}))
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			s := &relay.Server{State: relayServerFile(), Log: log, Memory: int64(memory), Allow: cfg.Destinations(), Drain: drain, Reload: reload}
			ending := func(sig os.Signal) {
				log.Info("draining: a second signal ends at once", "signal", sig.String(), "at_most", drain)
			}
			daemon.SaveMemory()
			return untilSignaled(cmd.Context(), 0, ending, func(ctx context.Context) error {
				return serveRelay(ctx, s, listen, pages)
			})
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "`ADDRESS` to listen at, with a port")
	c.Flags().StringSliceVar(&allow, "allow-destinations", nil, "also connect to the `NETWORK` or address, although it is private; repeatable")
	c.Flags().StringVar(&size, "memory", config.Bytes(relay.DefaultMemory).String(), "`SIZE` of what the tunnels of all clients may hold on their way")
	c.Flags().StringVar(&pages, "metrics", "", "loopback `ADDRESS` to serve /metrics at, like 127.0.0.1:9092; none if empty")
	c.Flags().DurationVar(&drain, "drain", 30*time.Second, "`DURATION` for which open tunnels may continue at the end")
	c.Flags().StringVar(&level, "log-level", "info", "`LEVEL`: debug, info, warn, error")
	return c
}

func (a *app) relayClients() *cobra.Command {
	return &cobra.Command{
		Use:   "clients",
		Short: "List the clients that were paired with this relay",
		Long: `List the keys of the clients that this relay knows, since when, what their tunnels have carried this month (of UTC; up to
16 MiB more while the relay runs), and their limits. Run it as root, or as the user who runs "relay serve".

` + exitCodes,
		Example: `  tributary relay clients`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := relayOwner(); err != nil {
				return err
			}
			all, err := relay.Clients(relayServerFile())
			if err != nil {
				return err
			}
			if len(all) == 0 {
				fmt.Fprintln(a.stderr, "tributary: no client was paired yet: tributary relay pair HOST:PORT")
				return nil
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			limits, err := relay.LimitsOf(relayServerFile())
			if err != nil {
				return err
			}
			fmt.Fprintln(w, "KEY\tPAIRED\tTHIS MONTH\tMONTH\tRATE\tFLOWS")
			byTime := slices.SortedFunc(maps.Keys(all), func(x, y relay.KeyID) int {
				return cmp.Or(all[x].Compare(all[y]), strings.Compare(string(x), string(y)))
			})
			for _, k := range byTime {
				used, err := relay.Used(relayServerFile(), k, time.Now())
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k, all[k].Local().Format("2006-01-02 15:04"), size(used), limitColumns(limits[k]))
			}
			return w.Flush()
		},
	}
}

func (a *app) relayRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove KEY",
		Short: "Make this relay forget a client",
		Long: `Make this relay forget the client whose key begins with KEY, as "relay clients" shows it. Its tunnels end within seconds.
Run it as root, or as the user who runs "relay serve".

` + exitCodes,
		Example: `  tributary relay remove q3fX
  tributary relay remove -- -x7Q     a key that begins with "-"`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := relayOwner(); err != nil {
				return err
			}
			k, err := relay.Remove(relayServerFile(), args[0])
			if errors.Is(err, relay.ErrNoClient) {
				return usageError{fmt.Errorf("%q is %w", args[0], err)}
			}
			if err == nil {
				fmt.Fprintf(a.stdout, "removed: %s\n", k)
			}
			return err
		},
	}
}

func (a *app) relayPair() *cobra.Command {
	var limits limitFlags
	var code bool
	c := &cobra.Command{
		Use:   "pair HOST:PORT",
		Short: "Print a link by which one client can pair with this relay",
		Long: `Print a link with a token that makes one client known to this relay. It is valid once, for a quarter of an hour, and a
secret until then. HOST:PORT is how clients reach the relay. Run it as root, or as the user who runs "relay serve".

On a terminal a QR code of the link follows, which a phone can read; --qr=false leaves it out.

` + exitCodes,
		Example: `  tributary relay pair relay.example.com:443
  ssh root@relay.example.com tributary relay pair relay.example.com:443 --qr
  tributary relay pair relay.example.com:443 --rate 20Mbit/s --month 100GB`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg := config.Default()
			cfg.Relay.Address = args[0]
			if err := cfg.Validate(); err != nil {
				return usageError{err}
			}
			var l relay.Limits
			if err := limits.apply(cmd.Flags(), &l); err != nil {
				return usageError{err}
			}
			if err := relayOwner(); err != nil {
				return err
			}
			i, err := relay.Invite(relayServerFile(), args[0], l)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, i.Link())
			if !cmd.Flags().Changed("qr") {
				code = a.outTerminal
			}
			if !code {
				return nil
			}
			picture, err := qrCode(i.Link())
			if err != nil {
				return fmt.Errorf("the link is too long for a QR code: %w", err)
			}
			_, err = io.WriteString(a.rawStdout, picture)
			return err
		},
	}
	c.Flags().BoolVar(&code, "qr", false, "print a QR code of the link, too (default: on a terminal)")
	limits.add(c.Flags())
	return c
}

func (a *app) relayJoin() *cobra.Command {
	return &cobra.Command{
		Use:   "join LINK",
		Short: "Pair with a relay by the link that it printed",
		Long: `Pair with a relay. LINK is what "relay pair" printed on it; with "-" it is read from standard input, so that other users of
this machine do not see it in the list of processes.

` + exitCodes,
		Example: `  tributary relay join -
  ssh root@relay.example.com tributary relay pair relay.example.com:443 | tributary relay join -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := args[0]
			if text == "-" {
				line, err := bufio.NewReader(io.LimitReader(os.Stdin, 4096)).ReadString('\n')
				if err != nil && err != io.EOF {
					return err
				}
				text = line
			}
			i, err := relay.ParseInvitation(strings.TrimSpace(text))
			if err != nil {
				return usageError{err}
			}
			if err := relay.Enrol(cmd.Context(), daemon.RelayFile(), i); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "paired; to use it, add to the configuration:\n\n[relay]\naddress = %q\nmode = \"tunnels\"\n", i.Address)
			return nil
		},
	}
}
