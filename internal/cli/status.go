package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/host/privilege"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// refresh is the interval at which the live view is drawn.
const refresh = time.Second

func (a *app) statusCommand() *cobra.Command {
	var file, socket string
	var once, js bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the links and downloads of the running proxy",
		Long: `Show the links, running downloads and memory of the running proxy. On a terminal, the display is updated every second
until you press Ctrl-C; with --once, or if the output is not a terminal, the status is printed once. Each link is shown
with its state, goodput, round-trip time, bytes carried, bytes received twice (waste), open tunnels and undivided
requests, and number of bans. Downloads are numbered, so that URLs stay private.

The command connects to the Unix socket of the proxy: the one that "control" in the configuration names, by default in
$XDG_RUNTIME_DIR/tributary, and otherwise that of the system service. Sockets of other users are ignored, except that
root may use a socket in its owner's own folder.`,
		Example: `  tributary status
  tributary status --once
  tributary status --json | jq .links`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, first, err := a.reach(cmd.Context(), file, socket)
			if err != nil {
				return err
			}
			defer client.Close()
			switch live := a.outTerminal && !once; {
			case js && !live:
				return printJSON(a.stdout, first)
			case js:
				return watch(cmd.Context(), client, first, func(s,
					_ control.Status,
				) error {
					return json.NewEncoder(a.stdout).Encode(s)
				})
			case !live:
				return printStatus(a.stdout, first, control.Status{})
			}
			return watch(cmd.Context(), client, first, func(s, before control.Status) error {
				var page strings.Builder
				if err := printStatus(&page, s, before); err != nil {
					return err
				}
				// Cursor home, clear the rest of each line, then the rest of the screen (ECMA-48).
				_, err := io.WriteString(a.rawStdout, "\x1b[H"+strings.ReplaceAll(shown(page.String()), "\n",
					"\x1b[K\n")+"\x1b[J")
				return err
			})
		},
	}
	c.Flags().StringVar(&file, "config", "", "read settings from `FILE`, as serve does")
	c.Flags().StringVar(&socket, "control", "", "connect to the proxy's socket at `PATH`")
	c.Flags().BoolVar(&once, "once", false, "print the status once and exit")
	c.Flags().BoolVar(&js, "json", false, "print JSON; on a terminal, one line per second unless --once is given")
	return c
}

// sockets returns the paths on which the proxy may listen, the likeliest first.
func (a *app) sockets(file, socket string) ([]string, error) {
	if socket != "" {
		return []string{socket}, nil
	}
	cfg, err := config.Load(a.configFile(file), a.getenv)
	switch {
	case err != nil:
		return nil, err
	case cfg.Control == "":
		return nil, errors.New(`control = "" in the configuration disables the control socket; set control to a path to use this command`)
	case cfg.Control != config.AutoControl:
		return []string{cfg.Control}, nil
	}
	paths := []string{control.Path(a.getenv, os.Getuid(), os.TempDir())}
	if uid, err := strconv.Atoi(a.getenv("SUDO_UID")); err == nil && os.Getuid() == 0 { // may be the caller's proxy
		paths = append(paths, filepath.Join("/run/user", strconv.Itoa(uid), "tributary", filepath.Base(control.System)))
	}
	if paths[0] != control.System {
		paths = append(paths, control.System)
	}
	return paths, nil
}

// reach connects to the running proxy, on socket or as the configuration in file defines.
func (a *app) reach(ctx context.Context, file, socket string) (*control.Client, control.Status, error) {
	paths, err := a.sockets(file, socket)
	if err != nil {
		return nil, control.Status{}, usageError{err}
	}
	c, s, err := connect(ctx, paths, socket == "")
	if errors.Is(err, fs.ErrPermission) && a.uid != 0 {
		err = fmt.Errorf("%w: the proxy of this machine answers root only: %s", err, privilege.Sudo("status"))
	}
	return c, s, err
}

// connect connects to the first proxy that answers; if here, to the first in this network namespace. Namespaces share
// the file system, and with it the sockets, but neither links nor ports.
func connect(ctx context.Context, paths []string, here bool) (client *control.Client, s control.Status, err error) {
	var first error
	own := control.Namespace()
	for _, p := range paths {
		client = control.NewClient(p)
		s, err = client.Status(ctx)
		if err == nil && here && s.Namespace != "" && own != "" && s.Namespace != own {
			err = fmt.Errorf("%w (the proxy of %s is in another network namespace; --control %[2]s asks it)",
				control.ErrNotRunning, p)
		}
		if err == nil {
			return client, s, nil
		}
		client.Close()
		if first == nil || errors.Is(first, control.ErrNotRunning) && !errors.Is(err, control.ErrNotRunning) {
			first = err
		}
	}
	return nil, s, first
}

// watch shows the state until ctx or the proxy ends.
func watch(ctx context.Context, c *control.Client, first control.Status,
	show func(s, before control.Status) error,
) error {
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var before control.Status
	for s := first; ; {
		if err := show(s, before); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		next, err := c.Status(ctx)
		if err != nil {
			return err
		}
		before, s = s, next
	}
}

// shortReason is the length up to which a reason stands beside the state of a link.
const shortReason = 20

// printStatus prints s. Rates of downloads are measured since before.
func printStatus(w io.Writer, s, before control.Status) error {
	fmt.Fprintf(w, "tributary %s, process %d, on %s, up %s\n", s.Version, s.PID, s.Listen,
		s.At.Sub(s.Started).Round(time.Second))
	if s.Page != "" {
		fmt.Fprintf(w, "in a browser: %s\n", s.Page)
	}
	if s.Draining {
		fmt.Fprintln(w, "draining: it finishes what runs and accepts nothing new")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LINK\tSTATE\tGOODPUT\tRTT\tBYTES\tWASTE\tTUNNELS\tBANS")
	var below []string // what would make a column too wide
	for _, l := range s.Links {
		state := l.State
		switch {
		case len(l.Reason) > shortReason:
			below = append(below, fmt.Sprintf("%s is %s: %s", l.Name, l.State, l.Reason))
		case l.Reason != "":
			state += " (" + l.Reason + ")"
		}
		if u := l.Used; u != nil && u.MonthLimit > 0 {
			below = append(below, fmt.Sprintf("%s has carried %s of %s this month", l.Name, size(u.Month),
				size(u.MonthLimit)))
		}
		if u := l.Used; u != nil && u.DayLimit > 0 {
			below = append(below, fmt.Sprintf("%s has carried %s of %s today", l.Name, size(u.Today), size(u.DayLimit)))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", l.Name, state, bitRate(l.Goodput), roundTrip(l.RTT),
			size(l.Bytes), size(l.Waste), l.Undivided, l.Bans)
	}
	if len(s.Links) == 0 {
		fmt.Fprintln(t, "none; to see why, run tributary links")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, text := range below {
		fmt.Fprintln(w, text)
	}
	if v := s.VPN; v != nil && v.Mode == config.VPNAround {
		fmt.Fprintf(w, "downloads bypass the VPN %s (vpn = %q)\n", strings.Join(v.Interfaces, ", "), v.Mode)
	} else if v != nil {
		fmt.Fprintf(w, "downloads use the VPN %s and not the links beneath it; vpn = %q bypasses it\n",
			strings.Join(v.Interfaces, ", "), config.VPNAround)
	}
	if s.Relay != nil {
		printRelay(w, s.Relay)
	}
	fmt.Fprintln(w)
	if len(s.Transfers) > 0 {
		fmt.Fprintln(t, "DOWNLOAD\tDONE\tOF\tRATE\tHELD\tBY LINK")
		for _, x := range s.Transfers {
			of, done := "?", size(x.Offset)
			if x.Size > 0 {
				of, done = size(x.Size), fmt.Sprintf("%s %3.0f%%", size(x.Offset),
					100*float64(x.Offset)/float64(x.Size))
			}
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", x.ID, done, of, rateSince(x, s, before), size(x.Held),
				byLink(x.Links))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, x := range s.Transfers {
			for _, l := range x.LeftOut {
				fmt.Fprintf(w, "download %d does not use %s at the moment: %s\n", x.ID, l.Link, l.Text)
			}
			for _, l := range x.Limited {
				fmt.Fprintf(w, "download %d over %s: the server limits each connection to %s: %s\n", x.ID, l.Link,
					bitRate(l.Each), count(int64(l.Conns), "connection"))
			}
		}
		fmt.Fprintln(w)
	}
	if len(s.Finished) > 0 {
		fmt.Fprintln(t, "FINISHED\tDELIVERED\tIN\tBY LINK\tRESULT")
		for _, f := range s.Finished {
			fmt.Fprintf(t, "%s\t%s\t%.1f s\t%s\t%s\n", f.At.Local().Format(time.TimeOnly), size(f.Bytes), f.Seconds,
				byLink(f.Links), results[f.Result])
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "%s divided over the links, %s over one link, %s\nmemory: %s used, %s granted of %s\n",
		count(s.Ended, "download"), count(s.Passed, "request"), count(int64(s.Tunnels), "open tunnel"),
		size(s.Budget.Held),
		size(s.Budget.Granted), size(s.Budget.Total))
	return err
}

// count returns a number of things, such as "1 tunnel" or "2 tunnels".
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printRelay prints the state of the relay.
func printRelay(w io.Writer, r *relay.Status) {
	var up, down []string
	for _, l := range r.Lanes {
		switch {
		case l.Up:
			up = append(up, fmt.Sprintf("%s %s (%s)", l.Link, roundTrip(l.RTT), size(l.Bytes)))
		case l.Failure != "":
			down = append(down, l.Link+": "+l.Failure)
		}
	}
	if len(up) > 0 {
		fmt.Fprintf(w, "relay %s: %s over %s\n", r.Address, count(int64(r.Streams), "tunnel"), strings.Join(up, ", "))
	} else {
		fmt.Fprintf(w, "relay %s: not connected; tunnels use one link\n", r.Address)
	}
	if r.Refusal != "" {
		fmt.Fprintf(w, "relay %s: refuses new tunnels, which use one link: %s\n", r.Address, r.Refusal)
	}
	if r.Failed > 0 {
		fmt.Fprintf(w, "relay %s: did not carry %s, which used one link; the last one: %s\n", r.Address,
			count(r.Failed, "tunnel"), r.Failure)
	}
	for _, l := range down {
		fmt.Fprintf(w, "relay %s: no connection over %s\n", r.Address, l)
	}
}

// results maps the result of a download to words.
var results = map[string]string{
	"ok": "complete", "client_gone": "cancelled by the program", "origin": "server error",
	"link": "no link left", "local": "error on this machine",
}

// rateSince returns the rate of a download since before, or since its start if before does not have it.
func rateSince(x engine.TransferStatus, s, before control.Status) string {
	for _, b := range before.Transfers {
		if took := s.At.Sub(before.At).Seconds(); b.ID == x.ID && took > 0 {
			return bitRate(float64(x.Offset-b.Offset) / took)
		}
	}
	if x.Seconds <= 0 {
		return "-"
	}
	return bitRate(float64(x.Offset) / x.Seconds)
}

func byLink(all []engine.LinkBytes) string {
	total := int64(0)
	for _, l := range all {
		total += l.Bytes
	}
	var parts []string
	for _, l := range all {
		parts = append(parts, fmt.Sprintf("%s %.0f%%", l.Link, 100*float64(l.Bytes)/float64(max(total, 1))))
	}
	return or(strings.Join(parts, ", "))
}

func bitRate(bytes float64) string {
	switch bits := 8 * bytes; {
	case bits >= 1e6:
		return fmt.Sprintf("%.1f Mbit/s", bits/1e6)
	case bits > 0:
		return fmt.Sprintf("%.0f kbit/s", bits/1e3)
	}
	return "-"
}

func roundTrip(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f ms", 1e3*seconds)
}

func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
