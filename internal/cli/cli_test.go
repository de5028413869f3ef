package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/net/link"
)

var errNoProxy = errors.New("no proxy in this test")

// noProxy is a demo.Proxy that cannot be started.
func noProxy(context.Context, []link.Link) (string, func(), error) { return "", nil, errNoProxy }

// noServe is a serve function that fails.
func noServe(context.Context, config.Config, *slog.Logger, daemon.Reloads) error {
	return errors.New("not served in this test")
}

// invoke runs the command line with serve in place of the daemon.
func invoke(t *testing.T, serve func(context.Context, config.Config, *slog.Logger, daemon.Reloads) error, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		version: "v9", rawStdout: &out, rawStderr: &errs, serve: serve, proxy: noProxy,
		getenv: func(string) string { return "" },
	}
	code = a.run(t.Context(), args)
	listed(t, code, args...)
	return code, out.String(), errs.String()
}

func TestServeFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	text := "scheduler = \"single\"\nlisten = \"127.0.0.1:1111\"\n[link.wlan0]\nmetered = true\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile, err := config.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	with := func(c config.Config, change func(*config.Config)) config.Config {
		change(&c)
		return c
	}
	for _, c := range []struct {
		args string
		want config.Config
	}{
		{"", config.Default()},
		{"--listen 127.0.0.1:3128 --admin=", with(config.Default(), func(c *config.Config) { c.Listen, c.Admin = "127.0.0.1:3128", "" })},
		{"--link wlan0 --link wwan0", with(config.Default(), func(c *config.Config) { c.Links = []string{"wlan0", "wwan0"} })},
		{"--links wlan0,wwan0", with(config.Default(), func(c *config.Config) { c.Links = []string{"wlan0", "wwan0"} })},
		{"--log_level debug --scheduler single", with(config.Default(), func(c *config.Config) { c.LogLevel, c.Scheduler = "debug", "single" })},
		{"--config " + file, fromFile},
		{"--scheduler alg3 --config " + file, with(fromFile, func(c *config.Config) { c.Scheduler = "alg3" })},
	} {
		t.Run(c.args, func(t *testing.T) {
			var got config.Config
			serve := func(_ context.Context, cfg config.Config, _ *slog.Logger, _ daemon.Reloads) error {
				got = cfg
				return nil
			}
			code, _, stderr := invoke(t, serve, append([]string{"serve"}, strings.Fields(c.args)...)...)
			if code != exitOK || !reflect.DeepEqual(got, c.want) {
				t.Errorf("exit code %d, %s\ngot  %+v\nwant %+v", code, stderr, got, c.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	never := func(context.Context, config.Config, *slog.Logger, daemon.Reloads) error {
		t.Error("served")
		return nil
	}
	for _, c := range []struct{ args, want string }{
		{"serv", `unknown command "serv" for "tributary": did you mean serve?`},
		{"serve --lisen x", "run tributary serve --help"},
		{"config", "missing subcommand: one of check, path, show"},
		{"completion tcsh", `tributary completion has no subcommand "tcsh"`},
		{"run", "an argument is missing: tributary run [flags] COMMAND [ARGUMENT]..."},
		{"use pip npm", `"npm" is one argument too many: tributary use [PROGRAM]`},
		{"rpc", "missing subcommand: one of page, pair, paired, token, unpair"},
		{"redirect of", `tributary redirect has no subcommand "of"`},
		{"serve now", `unknown command "now"`},
		{"redirect on --port 0", "--port 0"},
		{"redirect on --port 65536", "--port 65536"},
		{"redirect on --user no-such-user", "--user"},
		{"redirect on --except 5-4", "--except"},
		{"serve --lisen x", "unknown flag: --lisen"},
		{"serve --user no-such-user", "--user"},
		{"serve --user 0", "root keeps all privileges"},
		{"serve --listen 0.0.0.0:8080", "allow_remote = true"},
		{"serve --scheduler best --log-level loud", "--scheduler: "},
		{"serve --scheduler best --log-level loud", "--log-level: "},
		{"serve --config /nowhere/c.toml", "/nowhere/c.toml"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, _, stderr := invoke(t, never, strings.Fields(c.args)...)
			if code != exitUsage || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "--help") {
				t.Errorf("exit code %d, want %d; %q, want %q", code, exitUsage, stderr, c.want)
			}
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, command := range []string{"", "serve", "get", "demo", "version"} {
		code, stdout, _ := invoke(t, noServe, append(strings.Fields(command), "--help")...)
		if code != exitOK || !strings.Contains(stdout, "Examples:\n  tributary ") {
			t.Errorf("%q --help: exit code %d\n%s", command, code, stdout)
		}
	}
	t.Run("R74 lower-case variables", func(t *testing.T) {
		_, stdout, _ := invoke(t, noServe, "serve", "--help")
		if !strings.Contains(stdout, "http_proxy=") || !strings.Contains(stdout, "no_proxy=localhost,127.0.0.0/8,::1") {
			t.Error(stdout)
		}
	})
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version", "-V"} {
		code, stdout, _ := invoke(t, noServe, arg)
		if code != exitOK || !strings.HasPrefix(stdout, "tributary v9 (go") || !strings.HasSuffix(stdout, ")\n") {
			t.Errorf("%s: exit code %d, %q", arg, code, stdout)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("no"), exitFailure},
		{errKilled, exitFailure},
		{fmt.Errorf("listen: %w", syscall.EADDRINUSE), exitPortInUse},
		{fmt.Errorf("bind: %w", syscall.EPERM), exitPermission},
		{fmt.Errorf("listen: %w", syscall.EACCES), exitPermission},
		{usageError{syscall.EACCES}, exitUsage},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// TestPortInUse: the error for a port in use names the process that uses it and the setting to change.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, flag := range []string{"--listen", "--admin"} {
		serve := func(_ context.Context, c config.Config, _ *slog.Logger, _ daemon.Reloads) error {
			addr := c.Listen
			if flag == "--admin" {
				addr = c.Admin
			}
			_, err := net.Listen("tcp", addr)
			return fmt.Errorf("start the proxy: %w", err)
		}
		code, _, stderr := invoke(t, serve, "serve", flag, l.Addr().String())
		if code != exitPortInUse {
			t.Errorf("exit code %d, want %d", code, exitPortInUse)
		}
		for _, want := range []string{fmt.Sprintf("process %d (", os.Getpid()), "another port with " + flag} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q, want %q", stderr, want)
			}
		}
	}
}

// interrupt sends a signal to this process and waits for its delivery. On a busy machine, the delivery may be so late that the
// command no longer listens, and the signal would end the test.
func interrupt(t *testing.T, sig syscall.Signal) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, sig)
	defer signal.Stop(got)
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Error(err)
		return
	}
	<-got
}

func TestSignals(t *testing.T) {
	term := func() { interrupt(t, syscall.SIGTERM) }
	t.Run("first drains", func(t *testing.T) {
		serve := func(ctx context.Context, _ config.Config, _ *slog.Logger, _ daemon.Reloads) error {
			term()
			<-ctx.Done()
			return nil
		}
		if code, _, stderr := invoke(t, serve, "serve"); code != exitOK || !strings.Contains(stderr, "draining") {
			t.Errorf("exit code %d, %q", code, stderr)
		}
	})
	t.Run("second kills", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		serve := func(ctx context.Context, _ config.Config, _ *slog.Logger, _ daemon.Reloads) error {
			term()
			<-ctx.Done()
			term()
			<-release
			return nil
		}
		if code, _, stderr := invoke(t, serve, "serve"); code != exitFailure || !strings.Contains(stderr, "second signal") {
			t.Errorf("exit code %d, %q", code, stderr)
		}
	})
	t.Run("none", func(t *testing.T) {
		failed := errors.New("failed")
		err := untilSignaled(t.Context(), 0, func(os.Signal) { t.Error("draining") }, func(context.Context) error { return failed })
		if !errors.Is(err, failed) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLogLevel(t *testing.T) {
	serve := func(_ context.Context, _ config.Config, log *slog.Logger, _ daemon.Reloads) error {
		log.Info("told")
		log.Debug("whispered")
		return nil
	}
	_, stdout, stderr := invoke(t, serve, "serve")
	if !strings.Contains(stderr, "told") || strings.Contains(stderr, "whispered") || stdout != "" {
		t.Errorf("at info: stdout %q, stderr %q", stdout, stderr)
	}
	if _, _, stderr = invoke(t, serve, "serve", "--log-level", "debug"); !strings.Contains(stderr, "whispered") {
		t.Errorf("at debug: %q", stderr)
	}
}
