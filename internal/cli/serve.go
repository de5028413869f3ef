package cli

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/doctor"
)

func (a *app) serveCommand() *cobra.Command {
	var flags serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the proxy",
		Long: `Run the proxy until SIGTERM or SIGINT. The proxy then finishes running requests but accepts no new ones; a second signal
stops it immediately.

Links are found automatically: all interfaces that are up and have an address and a route to the internet. Tunnels,
bridges and container devices are used only if you name them with --link.

Settings come from the file given by --config, or from $XDG_CONFIG_HOME/tributary/config.toml if it exists. Flags override
the file. Settings of single links ([link.NAME]) exist only in the file. On SIGHUP, the proxy reloads the file. Changes to
links and the log level take effect immediately; other changes need a restart, and a file with such a change is rejected.

` + userHelp,
		Example: `  tributary serve
  tributary serve --link wlan0 --link wwan0
  tributary serve --listen 127.0.0.1:3128 --admin 127.0.0.1:9092
  tributary serve --config /etc/tributary.toml --log-level debug
  sudo tributary serve --user nobody

  # send one command through the proxy, except for local addresses
  http_proxy=http://127.0.0.1:8080 no_proxy=localhost,127.0.0.0/8,::1 wget http://example.com/big.iso`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := becomeUser(flags.user); err != nil {
				return err
			}
			cfg, err := flags.config(cmd, a.getenv)
			if err != nil {
				return usageError{err}
			}
			if err := noUpstream(cfg, a.getenv, "serve"); err != nil {
				return usageError{err}
			}
			level := new(slog.LevelVar)
			level.Set(cfg.Level())
			log := newLog(a.stderr, a.terminal, level)
			if os.Geteuid() == 0 {
				log.Warn("this proxy runs as root, and downloads ordered over RPC belong to root: choose a user with --user")
			}
			hup := make(chan os.Signal, 1)
			signal.Notify(hup, syscall.SIGHUP)
			defer signal.Stop(hup)
			reloads := daemon.Reloads{
				Wanted: hup, Level: level,
				Load: func() (config.Config, error) { return flags.config(cmd, a.getenv) },
			}
			draining := func(s os.Signal) {
				log.Info("draining: finishing what runs; a second signal stops immediately", "signal", s.String())
			}
			return explain(untilSignaled(cmd.Context(), 0, draining, func(ctx context.Context) error {
				return a.serve(ctx, cfg, log, reloads)
			}), cfg)
		},
	}
	flags.register(c)
	return c
}

// vpnHelp is the help of --vpn.
const vpnHelp = "`MODE` for a VPN that carries all traffic: follow (use only the VPN) or around (use the links beneath it)"

// goalHelp is the help of --goal.
const goalHelp = "`GOAL` of downloads: fastest (use all links), frugal (save energy) or cheapest (save metered data)"

// noUpstream returns an error if the environment names a proxy other than this one.
func noUpstream(cfg config.Config, getenv func(string) string, command string) error {
	a, err := net.ResolveTCPAddr("tcp", cfg.Listen)
	if err != nil {
		return err
	}
	return doctor.Upstream(getenv, command, netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port()))
}

// serveFlags are the flags of serve.
type serveFlags struct {
	file, user, listen, admin, gateway, appSocket, scheduler, goal, logLevel string
	vpn, spread                                                              string
	maxConcurrent                                                            int
	links, users                                                             []string
}

func (f *serveFlags) register(c *cobra.Command) {
	d := config.Default()
	c.Flags().StringVar(&f.file, "config", "", "read settings from `FILE`")
	c.Flags().StringVar(&f.user, "user", "", "when started as root: run as `USER` (name or ID) with fewer privileges")
	c.Flags().StringVar(&f.listen, "listen", d.Listen, "serve the proxy on `ADDRESS`")
	c.Flags().StringVar(&f.admin, "admin", d.Admin,
		"serve the live page, metrics and health checks on `ADDRESS`; \"\" disables them")
	c.Flags().StringVar(&f.gateway, "gateway", d.Gateway,
		"serve https objects to programs that cannot use a proxy on `ADDRESS` (docs/GATEWAY.md)")
	c.Flags().StringSliceVar(&f.links, "link", nil, "use only the link `NAME`; repeatable")
	c.Flags().StringSliceVar(&f.users, "allow-users", nil,
		"also serve the user `NAME` of this machine; all = every user; repeatable")
	c.Flags().StringVar(&f.vpn, "vpn", d.VPN, vpnHelp)
	c.Flags().StringVar(&f.spread, "spread", string(d.Spread),
		"`PROGRAMS` whose undivided connections are spread over the links: auto (all except browsers), off or all")
	c.Flags().IntVar(&f.maxConcurrent, "max-concurrent", d.MaxConcurrent,
		"run at most this `NUMBER` of RPC downloads at a time (docs/RPC.md)")
	c.Flags().StringVar(&f.appSocket, "app-socket", d.AppSocket,
		"use the networks of the app that listens on the socket at `PATH` (docs/APPBRIDGE.md)")
	c.Flags().StringVar(&f.scheduler, "scheduler", d.Scheduler,
		"divide downloads with the scheduler `NAME`: "+strings.Join(config.Values("scheduler"), ", "))
	c.Flags().StringVar(&f.goal, "goal", d.Goal, goalHelp)
	c.Flags().StringVar(&f.logLevel, "log-level", d.LogLevel,
		"minimum `LEVEL` of log messages: debug, info, warn, error")
}

// config returns the file's settings with the flags that were given on top.
func (f *serveFlags) config(c *cobra.Command, getenv func(string) string) (config.Config, error) {
	cfg, err := config.Load(f.file, getenv)
	if err != nil {
		return config.Config{}, err
	}
	for _, o := range []struct {
		flag, key string
		set       func()
	}{
		{"listen", "listen", func() { cfg.Listen = f.listen }},
		{"admin", "admin", func() { cfg.Admin = f.admin }},
		{"gateway", "gateway", func() { cfg.Gateway = f.gateway }},
		{"link", "links", func() { cfg.Links = f.links }},
		{"allow-users", "allow_users", func() { cfg.AllowUsers = f.users }},
		{"vpn", "vpn", func() { cfg.VPN = f.vpn }},
		{"spread", "spread", func() { cfg.Spread = spread.Mode(f.spread) }},
		{"max-concurrent", "max_concurrent", func() { cfg.MaxConcurrent = f.maxConcurrent }},
		{"app-socket", "app_socket", func() { cfg.AppSocket = f.appSocket }},
		{"scheduler", "scheduler", func() { cfg.Scheduler = f.scheduler }},
		{"goal", "goal", func() { cfg.Goal = f.goal }},
		{"log-level", "log_level", func() { cfg.LogLevel = f.logLevel }},
	} {
		if c.Flags().Changed(o.flag) {
			o.set()
			cfg.Override(o.key, o.flag)
		}
	}
	return cfg.Config, cfg.Check()
}
