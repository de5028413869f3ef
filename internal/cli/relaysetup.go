package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/net/relay"
	"github.com/tributary-http/tributary/internal/net/relay/setup"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// relayServer holds the flags that setup and undo share.
type relayServer struct {
	file    string
	options []string
}

func (s *relayServer) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.file, "config", "", "change the configuration file `FILE`")
	c.Flags().StringArrayVar(&s.options, "ssh-option", nil, "pass `KEY=VALUE` to ssh with -o; repeatable")
}

func (a *app) relaySetup() *cobra.Command {
	var at relayServer
	var port uint16
	var address, binary string
	var unmeasured bool
	c := &cobra.Command{
		Use:   "setup root@HOST",
		Short: "Install a relay on a server over ssh, and pair with it",
		Long: `Copy this program to a server over ssh, install it there as a relay, pair with it, add the relay to the configuration, and
measure how much each link adds. HOST is any destination that ssh accepts, including a name from ~/.ssh/config. The relay
runs as a systemd service if the server has systemd, and otherwise as a background process that does not survive a reboot.
Run the command again to update the relay. "relay undo" removes everything.`,
		Example: `  tributary relay setup root@relay.example.com
  tributary relay setup root@relay.example.com --port 8443 --ssh-option IdentityFile=~/.ssh/relay`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if binary == "" {
				var err error
				if binary, err = os.Executable(); err != nil {
					return err
				}
			}
			s, err := setup.Open(args[0], at.options)
			if err != nil {
				return usageError{err}
			}
			defer s.Close()
			if address == "" {
				host, err := s.HostName(ctx)
				if err != nil {
					return err
				}
				address = net.JoinHostPort(host, strconv.Itoa(int(port)))
			}
			cfg, err := a.loadForRelay(at.file, address)
			if err != nil {
				return usageError{err}
			}
			fmt.Fprintf(a.stderr, "installing the relay on %s ...\n", args[0])
			said, err := s.Install(ctx, binary, port)
			if err != nil {
				return err
			}
			fmt.Fprint(a.stdout, said)
			if err := pairInstalled(ctx, s, args[0], address); err != nil {
				return err
			}
			path, err := config.Edit(at.file, a.getenv, func(text string) (string,
				error,
			) {
				return config.AddRelay(text, address)
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "paired with %s and added it to %s; to use it, restart tributary serve\n", address,
				path)
			if unmeasured {
				return nil
			}
			fmt.Fprintln(a.stderr, "measuring how much each link adds ...")
			return a.measureRelay(ctx, cfg, address)
		},
	}
	at.flags(c)
	c.Flags().Uint16Var(&port, "port", setup.DefaultPort, "let the relay listen on `PORT`")
	c.Flags().StringVar(&address, "address", "",
		"reach the relay at `HOST:PORT`, if that is not the host name of ssh and --port")
	c.Flags().StringVar(&binary, "binary", "",
		"install `FILE`: this program built for the server, if its architecture differs")
	c.Flags().BoolVar(&unmeasured, "no-measure", false, "skip the measurement, which downloads data over each link")
	return c
}

// loadForRelay returns the settings, and an error if a relay cannot be added to them. It is called before anything
// happens on the server.
func (a *app) loadForRelay(file, address string) (config.Config, error) {
	f, err := config.Load(file, a.getenv)
	if err != nil {
		return config.Config{}, err
	}
	cfg := f.Config
	cfg.Relay = config.Relay{Address: address, Mode: config.RelayTunnels}
	if err := cfg.Validate(); err != nil {
		return cfg, err
	}
	if f.Path == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(f.Path)
	if err == nil {
		_, err = config.AddRelay(string(text), address)
	}
	return cfg, err
}

// pairInstalled pairs with a newly installed relay.
func pairInstalled(ctx context.Context, s *setup.Server, destination, address string) error {
	before, err := relay.OwnKey(daemon.RelayFile(), address)
	if err != nil {
		return err
	}
	link, err := s.Invite(ctx, address, string(before))
	if err != nil {
		return err
	}
	i, err := relay.ParseInvitation(link)
	if err != nil {
		return err
	}
	if err := relay.Enrol(ctx, daemon.RelayFile(), i); err != nil {
		return fmt.Errorf("%w; the relay runs, but %s cannot be reached from here: check the firewalls on the server and in between", err, address)
	}
	return relay.SetInstalled(daemon.RelayFile(), address, destination)
}

// measureRelay measures and prints how much each link adds.
func (a *app) measureRelay(ctx context.Context, cfg config.Config, address string) error {
	log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	gains, all, err := transport.MeasureRelay(ctx, cfg, daemon.RelayFile(), address, log)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LINK\tROUND TRIP\tALONE\tADDS")
	for _, g := range gains {
		if g.Failure != nil {
			fmt.Fprintf(w, "%s\t-\t-\t%v\n", g.Link, g.Failure)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g.Link, roundTrip(g.RTT), bitRate(g.Alone), bitRate(g.Adds))
	}
	fmt.Fprintf(w, "together\t\t%s\t\n", bitRate(all))
	if err := w.Flush(); err != nil {
		return err
	}
	if all == 0 {
		return errors.New("no link reaches the relay: check that it is running and that no firewall blocks its port")
	}
	return nil
}

func (a *app) relayUndo() *cobra.Command {
	var at relayServer
	var address string
	var here bool
	c := &cobra.Command{
		Use:   "undo root@HOST",
		Short: "Remove everything that \"relay setup\" installed, here and on the server",
		Long: `Remove the relay that "relay setup" installed on a server, together with the keys of all its clients. Then delete the
relay's keys on this machine and remove the relay from the configuration. With --here, change only this machine, for
example if the server no longer exists.`,
		Example: `  tributary relay undo root@relay.example.com
  tributary relay undo --here root@relay.example.com`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses := []string{address}
			if address == "" {
				var err error
				if addresses, err = relay.Installed(daemon.RelayFile(), args[0]); err != nil {
					return err
				}
			}
			if !here {
				s, err := setup.Open(args[0], at.options)
				if err != nil {
					return usageError{err}
				}
				defer s.Close()
				if err := s.Remove(cmd.Context()); err != nil {
					return fmt.Errorf("%w; if the server no longer exists, run tributary relay undo --here %s", err,
						args[0])
				}
				fmt.Fprintf(a.stdout, "removed the relay from %s\n", args[0])
			}
			if len(addresses) == 0 {
				fmt.Fprintln(a.stderr,
					"tributary: this user did not set up a relay there; if you joined one with relay join, name it: --address HOST:PORT")
			}
			for _, one := range addresses {
				path, err := config.Edit(at.file, a.getenv, func(text string) (string,
					error,
				) {
					return config.RemoveRelay(text, one)
				})
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "removed %s from %s\n", one, path)
			}
			return relay.Forget(daemon.RelayFile(), addresses...)
		},
	}
	at.flags(c)
	c.Flags().StringVar(&address, "address", "", "remove the relay at `HOST:PORT`, if this user did not set it up")
	c.Flags().BoolVar(&here, "here", false, "change only this machine")
	return c
}
