package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/tributary-http/tributary/internal/net/relay"
)

func (a *app) relayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "relay",
		Short: "Carry tunnels over all links through a server of your own",
		Long: `A tunnel (https, ssh, git push) is one connection, so it normally uses one link. Through a relay on a server that you rent
or run at home, tunnels use all links and survive the failure of any of them. docs/RELAY.md explains what you trust that
server with.

If you have ssh access to the server, one command does everything: tributary relay setup root@HOST. Otherwise:

  1. on the server:  tributary relay serve --listen :443
  2. on the server:  tributary relay pair HOST:443        prints a pairing link that is valid once
  3. here:           tributary relay join LINK            then start tributary serve`,
		Example: `  tributary relay setup root@relay.example.com
  tributary relay serve --listen :443
  tributary relay pair relay.example.com:443
  tributary relay join -`,
	}
	c.AddCommand(a.relayServe(), a.relayPair(), a.relayJoin(), a.relayClients(), a.relayLimit(), a.relayRemove(),
		a.relaySetup(), a.relayUndo())
	return c
}

func (a *app) relayServe() *cobra.Command {
	var listen, level, size, pages string
	var drain time.Duration
	var allow []string
	c := &cobra.Command{
		Use:   "serve [--listen ADDRESS]",
		Short: "Run a relay for paired clients",
		Long: `Connect the tunnels of paired clients to their destinations until SIGTERM or SIGINT. The relay refuses to connect to
private networks, this machine, cloud metadata services and port 25. Without --listen, it uses the socket that systemd
passes to it. When started as root, it runs as the owner of its state folder.

On shutdown, the relay refuses new tunnels, which clients then send over one link, and keeps open tunnels for up to
--drain. A second signal stops it immediately. Changed keys and limits take effect within seconds, and immediately on
SIGHUP.`,
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
				return usageError{errors.New("--drain: want a duration of 0 or more")}
			}
			if at, err := netip.ParseAddrPort(pages); pages != "" && (err != nil || !at.Addr().IsLoopback()) {
				return usageError{fmt.Errorf("--metrics %q: want a loopback address with a port, like 127.0.0.1:9092",
					pages)}
			}
			if err := relayOwner(unix.CAP_NET_BIND_SERVICE); err != nil {
				return err
			}
			log := newLog(a.stderr, a.terminal, cfg.Level())
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			s := &relay.Server{
				State:  relayServerFile(),
				Log:    log,
				Memory: int64(memory),
				Allow:  cfg.Destinations(),
				Drain:  drain,
				Reload: reload,
			}
			ending := func(sig os.Signal) {
				log.Info("draining: finishing what runs; a second signal stops immediately", "signal", sig.String(),
					"at_most", drain)
			}
			daemon.SaveMemory()
			return untilSignaled(cmd.Context(), 0, ending, func(ctx context.Context) error {
				return serveRelay(ctx, s, listen, pages)
			})
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "listen on `ADDRESS`, including a port")
	c.Flags().StringSliceVar(&allow, "allow-destinations", nil,
		"also connect to this private `NETWORK` or address; repeatable")
	c.Flags().StringVar(&size, "memory", config.Bytes(relay.DefaultMemory).String(),
		"buffer at most `SIZE` for the tunnels of all clients together")
	c.Flags().StringVar(&pages, "metrics", "", "serve /metrics on this loopback `ADDRESS`, like 127.0.0.1:9092")
	c.Flags().DurationVar(&drain, "drain", 30*time.Second, "on shutdown, keep open tunnels for at most this `DURATION`")
	c.Flags().StringVar(&level, "log-level", "info", "minimum `LEVEL` of log messages: debug, info, warn, error")
	return c
}

func (a *app) relayClients() *cobra.Command {
	return &cobra.Command{
		Use:   "clients",
		Short: "List the paired clients of this relay",
		Long: `List the paired clients with their key, the time of pairing, the data that their tunnels have carried this month (UTC) and
their limits. While the relay runs, up to 16 MiB may not be included yet. Run this as root or as the user of
"relay serve".`,
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
				fmt.Fprintln(a.stderr,
					"tributary: no client is paired yet; to pair one, run tributary relay pair HOST:PORT")
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
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k, all[k].Local().Format("2006-01-02 15:04"), size(used),
					limitColumns(limits[k]))
			}
			return w.Flush()
		},
	}
}

func (a *app) relayRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove KEY",
		Short: "Remove a client from this relay",
		Long: `Remove the client whose key begins with KEY; "relay clients" shows the keys. Its tunnels end within seconds. Run this as
root or as the user of "relay serve".`,
		Example: `  tributary relay remove q3fX
  tributary relay remove -- -x7Q     # a key that begins with "-"`,
		Args: takes(1, 1),
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
		Short: "Print a link with which one client can pair with this relay",
		Long: `Print a pairing link for one client. The link is valid once, for 15 minutes; keep it secret until it is used. HOST:PORT is
the address at which clients reach this relay. Run this as root or as the user of "relay serve".

On a terminal, the link is also shown as a QR code for phones, unless you give --qr=false.`,
		Example: `  tributary relay pair relay.example.com:443
  ssh root@relay.example.com tributary relay pair relay.example.com:443 --qr
  tributary relay pair relay.example.com:443 --rate 20Mbit/s --month 100GB`,
		Args: takes(1, 1),
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
	c.Flags().BoolVar(&code, "qr", false, "also print the link as a QR code (default: on a terminal)")
	limits.add(c.Flags())
	return c
}

func (a *app) relayJoin() *cobra.Command {
	return &cobra.Command{
		Use:   "join LINK",
		Short: "Pair with a relay, using a link from relay pair",
		Long: `Pair with a relay. LINK is the link that "relay pair" printed on the relay. If LINK is "-", it is read from standard
input, so that other users of this machine cannot see it in the process list.`,
		Example: `  tributary relay join -
  ssh root@relay.example.com tributary relay pair relay.example.com:443 | tributary relay join -`,
		Args: takes(1, 1),
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
			fmt.Fprintf(a.stdout,
				"paired; to use the relay, add this to the configuration:\n\n[relay]\naddress = %q\nmode = \"tunnels\"\n",
				i.Address)
			return nil
		},
	}
}
