package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/host/use"
)

// checkTime limits the duration of the test download through the gateway, over links that may be slow.
const checkTime = 30 * time.Second

// useFlags are the flags of use.
type useFlags struct {
	file, socket, gateway string
	upstreams             []string
	print, undo, force    bool
}

func (a *app) useCommand() *cobra.Command {
	var f useFlags
	c := &cobra.Command{
		Use:   "use [PROGRAM]",
		Short: "Configure a program (pip, docker, apt, ...) to download over all links",
		Long: `Change the settings of a program so that it downloads through the gateway of the running proxy, over all links. The
gateway is allowed to fetch from the servers that the program's settings name. Before anything is written, use fetches
one URL to check that this works. It adds and changes only its own lines, in a separate file where possible, and --undo
restores the original settings exactly, without PROGRAM those of all programs. A second run changes nothing and prints
"unchanged".

The gateway's port must be one that no other user can take while the proxy does not run: one that systemd holds
(tributary-gateway.socket), or a privileged one. Otherwise, use changes nothing unless --force is given.

` + use.About() + `
System-wide settings need root; all others are those of the current user. docs/GATEWAY.md explains what each program
does while the proxy is not running.`,
		Example: `  tributary use pip
  sudo tributary use docker --upstream docker.io --upstream ghcr.io
  tributary use go --print
  tributary use pip --undo
  tributary use --undo`,
		Args:      takes(0, 1),
		ValidArgs: use.Programs(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if !f.undo {
					return usageError{errors.New("name a program, or undo all changes with --undo")}
				}
				return a.undoAll(cmd.Context(), f)
			}
			if !slices.Contains(use.Programs(), args[0]) {
				return usageError{fmt.Errorf("unknown program %q: want one of %s", args[0],
					strings.Join(use.Programs(), ", "))}
			}
			return a.use(cmd.Context(), args[0], f)
		},
	}
	c.Flags().BoolVar(&f.print, "print", false, "print the changes without making them")
	c.Flags().BoolVar(&f.undo, "undo", false, "restore the original settings")
	c.Flags().StringSliceVar(&f.upstreams, "upstream", nil,
		"download from the server at `URL` (for images: a registry) instead of those in the program's settings; repeatable")
	c.Flags().StringVar(&f.gateway, "gateway", "",
		"use the gateway at `ADDRESS`, whose configuration already allows the hosts")
	c.Flags().BoolVar(&f.force, "force", false,
		"also if another user could take the gateway's port, or if the program then accepts servers that its own settings refuse")
	c.Flags().StringVar(&f.file, "config", "", "read settings from `FILE`, as serve does")
	c.Flags().StringVar(&f.socket, "control", "", "ask the proxy over the socket at `PATH`")
	c.MarkFlagsMutuallyExclusive("print", "undo")
	return c
}

// useUser returns the user whose settings the command changes.
func (a *app) useUser(f useFlags) use.User {
	return use.User{
		Settings: use.Settings{Gateway: f.gateway, Upstreams: f.upstreams, Getenv: a.getenv, UID: os.Geteuid()},
		Record:   statefile.Path(a.getenv, "use.json"),
	}
}

// use changes the settings of a program, or prints the changes that it would make.
func (a *app) use(ctx context.Context, program string, f useFlags) error {
	u := use.User{
		Settings: use.Settings{
			Gateway:   f.gateway,
			Upstreams: f.upstreams,
			Getenv:    a.getenv,
			UID:       os.Geteuid(),
			Force:     f.force,
		},
		Record: statefile.Path(a.getenv, "use.json"),
	}
	if host, _, err := net.SplitHostPort(f.gateway); f.gateway != "" &&
		(err != nil || host != "127.0.0.1" && host != "::1" && host != "localhost") {
		return usageError{fmt.Errorf("--gateway %s: want a loopback address like 127.0.0.1:8081", f.gateway)}
	}
	if f.undo {
		return a.undoUse(ctx, program, u, f)
	}
	owner := useOwner(program, u)
	var client *control.Client
	var recorded []string
	if f.gateway == "" {
		var err error
		if client, _, err = a.reach(ctx, f.file, f.socket); err != nil {
			return useHint(err)
		}
		defer client.Close()
		now, err := client.Gateway(ctx, owner)
		if err != nil {
			return err
		}
		u.Gateway, recorded = now.Listen, now.Hosts
	}
	if f.print {
		report, err := u.Plan(program)
		if err != nil {
			return foreign(err)
		}
		return a.printUse(report, "would be ")
	}
	asked := false
	report, err := u.Do(ctx, program, func(r use.Report) error {
		if !r.Unchanged() && !f.force {
			if err := u.Held(ctx); err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
		}
		if client != nil && !slices.Equal(recorded, r.Hosts) {
			if err := client.RecordHosts(ctx, owner, r.Hosts); err != nil {
				return err
			}
			asked = true
		}
		if r.Unchanged() {
			return nil
		}
		return a.check(ctx, r.Check)
	})
	if err != nil {
		if asked {
			_ = client.RecordHosts(ctx, owner, recorded) // restore the previous hosts; err is reported
		}
		return foreign(err)
	}
	if report.Unchanged() {
		_, err := fmt.Fprintln(a.stdout, "unchanged")
		return err
	}
	return a.printUse(report, "")
}

// useOwner returns the name under which the gateway records the hosts of a user's program.
func useOwner(program string, u use.User) string { return fmt.Sprintf("%s of user %d", program, u.UID) }

// undoAll undoes the changes for all programs. It does what it can.
func (a *app) undoAll(ctx context.Context, f useFlags) error {
	u := a.useUser(f)
	all, err := u.Changed()
	if err != nil {
		return foreign(err)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.stdout, "unchanged")
		return err
	}
	var errs []error
	for _, program := range all {
		if err := a.undoUse(ctx, program, u, f); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", program, err))
		}
	}
	return errors.Join(errs...)
}

func (a *app) undoUse(ctx context.Context, program string, u use.User, f useFlags) error {
	report, err := u.Undo(ctx, program)
	if err != nil {
		return foreign(err)
	}
	if f.gateway == "" {
		client, _, err := a.reach(ctx, f.file, f.socket)
		if err == nil {
			defer client.Close()
			err = client.RecordHosts(ctx, useOwner(program, u), nil)
		}
		if err != nil && !errors.Is(err, control.ErrNoGateway) && !report.Unchanged() {
			fmt.Fprintln(a.stderr,
				"tributary: the gateway may still fetch from this program's servers; run this again when the proxy runs:", err)
		}
	}
	if report.Unchanged() {
		_, err := fmt.Fprintln(a.stdout, "unchanged")
		return err
	}
	return a.printUse(report, "")
}

// useHint adds an alternative to the error of a user who may not access the system's proxy.
func useHint(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: the proxy is the system's. Ask its administrator to add the servers as gateway_hosts to its configuration, "+
			"and name its gateway here: --gateway 127.0.0.1:8081", err)
	}
	return err
}

// foreign adds a hint to an error about files that belong to another user.
func foreign(err error) error {
	if errors.Is(err, statefile.ErrForeign) {
		return fmt.Errorf("%w: HOME is another user's; with sudo, use sudo -H", err)
	}
	return err
}

// check fetches the first of the URLs from the gateway, as the program will.
func (a *app) check(ctx context.Context, urls []string) error {
	if len(urls) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, urls[0], nil)
	if err != nil {
		return errors.New("the address to fetch is not a URL")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // never through a proxy
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("nothing was changed: the gateway does not respond: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError ||
		strings.HasPrefix(resp.Header.Get("Proxy-Status"), "tributary;") {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("nothing was changed: a test download failed: %s: %s", resp.Status,
			strings.TrimSpace(string(text)))
	}
	advice := ""
	if resp.StatusCode == http.StatusNotFound { // some servers lack what most have there
		advice = ": if the program finds nothing either, check the upstream's URL, and undo this with --undo"
	}
	_, err = fmt.Fprintf(a.stdout, "test download through the gateway: %s%s\n", resp.Status, advice)
	return err
}

// printUse prints the changes that were or would be made.
func (a *app) printUse(r use.Report, mood string) error {
	if r.Unchanged() {
		_, err := fmt.Fprintln(a.stdout, "unchanged")
		return err
	}
	var b strings.Builder
	for _, c := range r.Changes {
		what := "changed"
		if c.Created {
			what = "written"
		}
		fmt.Fprintf(&b, "%s%s: %s\n", mood, what, c.Path)
		for _, l := range c.Removed {
			fmt.Fprintf(&b, "  - %s\n", l)
		}
		for _, l := range c.Added {
			fmt.Fprintf(&b, "  + %s\n", l)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}
