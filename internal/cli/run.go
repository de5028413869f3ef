package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/host/supervise"
	"github.com/tributary-http/tributary/internal/host/trust"
)

// endedError is the exit code of a command that was run for the user. It is not printed, since the command printed its
// own errors.
type endedError struct{ code int }

func (e endedError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.code) }

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run [flags] COMMAND [ARGUMENT]...",
		Short: "Run a command whose downloads use all links, including https",
		Long: `Run COMMAND with its own private proxy, so that its downloads use all links, as with "tributary get". "tributary serve"
does not have to run.

To divide https downloads, the proxy decrypts them with a temporary certificate authority. Only this command trusts it,
through environment variables. The authority's key exists only in memory and is gone when the command ends. The proxy
itself verifies every server. Some connections are never decrypted and use one link: those to banks, identity providers
and update services, to servers that require a client certificate, and from programs that accept only the server's own
certificate.

This works with programs that read these variables: curl, wget, git, pip, uv, npm, cargo, go, node, apt, the AWS CLI and
most others. docs/RUN.md lists them and explains how trust works.

Signals are forwarded to the command. When it ends, its background processes are stopped too, and a last line shows how
much each link carried. run exits with the exit code of the command.`,
		Example: `  tributary run curl -O https://example.com/big.iso
  tributary run pip install torch
  tributary run --only example.com npm ci
  tributary run --store lftp -c "get https://example.com/big.iso"
  tributary run --link wlan0 --link wwan0 bash`,
		Args: takes(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := flags.config(cmd, a.getenv)
			if err != nil {
				return usageError{err}
			}
			if _, err := exec.LookPath(args[0]); err != nil {
				return codedError{err, supervise.ExitNotFound}
			}
			if err := a.knownLinks(cmd, "link", cfg); err != nil {
				return usageError{err}
			}
			if err := noUpstream(cfg, a.getenv, "run"); err != nil && !flags.quiet {
				fmt.Fprintf(a.stderr, "warning: %v\n", err)
			}
			return a.runWith(cmd.Context(), cfg, &flags, args)
		},
	}
	c.Flags().SetInterspersed(false)
	c.ValidArgsFunction = a.commandNames
	c.Flags().StringSliceVar(&flags.except, "except", nil,
		"leave connections to this `HOST` and its subdomains encrypted, over one link; repeatable")
	c.Flags().BoolVar(&flags.store, "store", false,
		"let COMMAND see the authority in the system's store, too: for programs that read no variable; sudo does not work then")
	c.Flags().StringSliceVar(&flags.only, "only", nil,
		"decrypt only connections to this `HOST` and its subdomains; repeatable")
	flags.from.register(c)
	c.Flags().StringVar(&flags.logLevel, "log-level", "warn",
		"minimum `LEVEL` of log messages: debug, info, warn, error")
	c.Flags().BoolVarP(&flags.quiet, "quiet", "q", false, "do not print the last line")
	return c
}

// runFlags are the flags of run.
type runFlags struct {
	only     []string
	except   []string
	store    bool
	from     linkFlags
	logLevel string
	quiet    bool
}

func (f *runFlags) config(c *cobra.Command, getenv func(string) string) (config.Config, error) {
	cfg, err := config.Load(f.from.file, getenv)
	if err != nil {
		return config.Config{}, err
	}
	f.from.lay(c, cfg)
	cfg.LogLevel = f.logLevel // the file's level is for the proxy
	cfg.Override("log_level", "log-level")
	return cfg.Config, cfg.Check()
}

// runWith runs a command with its own proxy.
func (a *app) runWith(ctx context.Context, cfg config.Config, f *runFlags, args []string) (err error) {
	log := newLog(a.stderr, a.terminal, cfg.Level())
	authority, err := intercept.New(fmt.Sprintf("Tributary run, process %d", os.Getpid()), f.only)
	if err != nil {
		return usageError{fmt.Errorf("--only: %w", err)}
	}
	pins := daemon.PinsFile()
	if f.store { // what programs reject without it says nothing
		pins = daemon.StorePinsFile()
	}
	opener, err := intercept.NewInterceptor(intercept.Config{
		Authority: authority, Only: f.only, Except: f.except, Pins: intercept.OpenPins(pins, log),
	})
	if err != nil {
		return err
	}
	folder, err := trust.NewFolder(a.privateBase(), supervise.EndLeft)
	if err != nil {
		return fmt.Errorf("make a folder for the certificate: %w", err)
	}
	defer folder.Remove() // if the supervisor did not
	sum := carried{of: map[string]int64{}}
	users, err := runUsers(folder)
	if err != nil {
		return err
	}
	roots, err := trust.CommandRoots(a.getenv)
	if err != nil {
		return err
	}
	proxy, err := daemon.NewPrivate(cfg, log, daemon.PrivateOptions{
		Users:     users,
		Roots:     roots.Pool(),
		Intercept: opener,
		Store:     f.store,
		Folder:    folder.Path,
		Carried:   sum.add,
		Refused:   sum.refuse,
	})
	if err != nil {
		return err
	}
	env, kept, err := trust.Environment(os.Environ(), args[0], folder, proxy.URL, authority.Certificate(), roots,
		len(f.only)+len(f.except) > 0)
	if err != nil {
		proxy.Stop()
		return err
	}
	var binds []supervise.Bind
	if f.store {
		if binds, err = trust.StoreBinds(folder, authority.Certificate(), roots); err != nil {
			proxy.Stop()
			return fmt.Errorf("--store: %w", err)
		}
	}
	looking, stop := context.WithCancel(ctx)
	looked := make(chan []string, 1)
	go func() { looked <- supervise.Unproxied(looking, folder.Path) }()
	code, err := supervised(ctx, folder, proxy, env, binds, args)
	stop()
	sum.past = <-looked
	proxy.Stop()
	if err != nil {
		return err
	}
	if !f.quiet {
		hosts := opener.Unopened()
		fmt.Fprintln(a.stderr, "tributary:", sum.String()+unopened(hosts, f.store)+undisturbed(kept, hosts))
	}
	if code != 0 {
		return endedError{code}
	}
	return nil
}

// supervised starts the proxy, runs the command with the environment env, and returns the exit code of the command.
func supervised(ctx context.Context, folder *trust.Folder, proxy *daemon.Private, env []string, binds []supervise.Bind,
	args []string,
) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	line := []string{self, "supervise", "--remove=" + folder.Path}
	for _, b := range binds {
		line = append(line, "--bind="+b.Source+"="+b.Target)
	}
	s, err := supervise.Start(slices.Concat(line, []string{"--"}, args), env, len(binds) > 0)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := proxy.Start(ctx); err != nil {
		return 0, err
	}
	return s.Run()
}

// privateBase returns the parent of a command's folder. For root it is accessible to all users, since root's programs
// may run as other users.
func (a *app) privateBase() string {
	if dir := a.getenv("XDG_RUNTIME_DIR"); dir != "" && os.Geteuid() != 0 {
		if is, err := os.Stat(dir); err == nil && is.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}

// The users that package managers become for downloads when root runs them: apt, and pacman.
const (
	aptUser    = "_apt"
	pacmanUser = "alpm"
)

// runUsers returns the IDs of the users that the proxy of a command serves: the current user and, for root, those that
// package managers become. That of apt can then read the certificates that apt trusts; pacman trusts the system's.
func runUsers(f *trust.Folder) ([]uint32, error) {
	users := []uint32{uint32(os.Geteuid())}
	if os.Geteuid() != 0 {
		return users, nil
	}
	for _, name := range []string{aptUser, pacmanUser} {
		u, err := user.Lookup(name)
		if err != nil {
			continue // another system
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		if name == aptUser {
			f.Apt = int(uid)
		}
		users = append(users, uint32(uid))
	}
	return users, nil
}

// carried counts bytes by link.
type carried struct {
	mu      sync.Mutex
	of      map[string]int64
	refused []string // destinations of tunnels that failed, and reason
	past    []string // paths of programs that connected without the proxy
}

func (c *carried) refuse(destination, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about := fmt.Sprintf("%s (%s)", destination, strings.TrimSuffix(reason, "."))
	if len(c.refused) < shownHosts && !slices.Contains(c.refused, about) {
		c.refused = append(c.refused, about)
	}
}

func (c *carried) add(link string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[link] += n
}

func (c *carried) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := ""
	if len(c.refused) > 0 {
		failed = "; failed: " + strings.Join(c.refused, ", ")
	}
	if len(c.past) > 0 {
		names := make([]string, len(c.past))
		for i, path := range c.past {
			names[i] = filepath.Base(path)
		}
		failed += "; without the proxy: " + strings.Join(names,
			", ") + " (over one link: it does not obey http_proxy, or has its own settings)"
	}
	if len(c.of) == 0 && failed != "" {
		return "the proxy carried nothing" + failed
	}
	if len(c.of) == 0 {
		return "the proxy carried nothing, and no connection without it was seen"
	}
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(c.of)) {
		parts = append(parts, l+" "+megabytes(c.of[l]))
	}
	return strings.Join(parts, ", ") + failed
}

// shownHosts is the maximum number of hosts that the last line names for each reason.
const shownHosts = 5

// unopened describes the hosts whose connections were tunnels, or were closed by programs that do not accept the
// certificate.
func unopened(all []intercept.Unopened, store bool) string {
	hosts := map[string][]string{}
	var reasons []string
	for _, u := range all {
		reason := string(u.Reason)
		switch {
		case u.Program != "":
			reason = filepath.Base(u.Program) + " " + reason
		case refused(u):
			reason = "a program " + reason
		}
		if hosts[reason] == nil {
			reasons = append(reasons, reason)
		}
		hosts[reason] = append(hosts[reason], u.Host)
	}
	text := ""
	for _, reason := range reasons {
		names := hosts[reason]
		if more := len(names) - shownHosts; more > 0 {
			names = append(names[:shownHosts:shownHosts], fmt.Sprintf("%d more", more))
		}
		text += fmt.Sprintf("; over one link: %s (%s)", strings.Join(names, ", "), reason)
	}
	if !store && slices.ContainsFunc(all, refused) {
		text += "; --store may help"
	}
	return text
}

// refused reports whether a program does not accept the certificate of run.
func refused(u intercept.Unopened) bool {
	switch u.Reason {
	// not OwnList: it is not the system's
	case intercept.Pinned, intercept.Rejected, intercept.Closed, intercept.OwnStore, intercept.OwnFile:
		return true
	}
	return false
}

// undisturbed describes the settings whose programs keep tunnels, if a program has refused the certificate.
func undisturbed(kept []trust.Limit, hosts []intercept.Unopened) string {
	if len(kept) == 0 || !slices.ContainsFunc(hosts, refused) {
		return ""
	}
	names := make([]string, len(kept))
	for i, l := range kept {
		names[i] = l.String()
	}
	return "; over one link: programs that obey " + strings.Join(names, ", ") + " (fewer authorities than the proxy's)"
}

// superviseCommand returns the hidden command whose process runs the command of run.
func (a *app) superviseCommand() *cobra.Command {
	var remove string
	var binds []string
	c := &cobra.Command{
		Use:    "supervise --remove=DIR -- COMMAND [ARGUMENT]...",
		Short:  "A part of tributary run",
		Hidden: true,
		Args:   takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			var all []supervise.Bind
			for _, b := range binds {
				source, target, _ := strings.Cut(b, "=")
				all = append(all, supervise.Bind{Source: source, Target: target})
			}
			code := supervise.Main(args, remove, all, func(err error) { fmt.Fprintln(a.stderr, complaint("", err)) })
			if code != 0 {
				return endedError{code}
			}
			return nil
		},
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&remove, "remove", "", "remove `DIR` at the end")
	c.Flags().StringArrayVar(&binds, "bind", nil, "let the command see one file in place of another: `SOURCE=TARGET`")
	return c
}
