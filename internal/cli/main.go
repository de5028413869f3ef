package cli

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/host/trust"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Main runs the command line args, without the program's name, and returns the exit code. After a second signal,
// goroutines may still run: the caller must exit. version is the build's version stamp, "" if there is none.
func Main(args []string, version string) int { return MainWith(args, version, nil) }

// MainWith is like Main, but "serve" takes the scheduler of each transfer from a function, if it is not nil.
func MainWith(args []string, version string, scheduler func() schedule.Scheduler) int {
	if version == "" {
		version = builtFrom()
	}
	a := &app{
		version:    version,
		stdin:      os.Stdin,
		rawStdout:  os.Stdout,
		rawStderr:  os.Stderr,
		getenv:     os.Getenv,
		proxy:      daemon.Start,
		candidates: transport.Candidates,
		store:      trust.SystemStore,
		uid:        os.Geteuid(),
		service:    packaged,
	}
	log.SetOutput(io.Discard) // net/http quotes unrequested bytes of origins there, whatever the log level is
	a.serve = func(ctx context.Context, cfg config.Config, log *slog.Logger, reloads daemon.Reloads) error {
		return daemon.Run(ctx, cfg, version, log, reloads, scheduler)
	}
	a.fetch = func(
		ctx context.Context, cfg config.Config, roots *x509.CertPool, log *slog.Logger,
		do func(context.Context, http.RoundTripper) error,
	) error {
		daemon.SaveMemory()
		t, err := transport.Own(cfg, roots, log)
		if err != nil {
			return err
		}
		defer t.Close()
		stop, err := t.Start(ctx)
		if err != nil {
			return err
		}
		defer stop()
		t.Await(ctx)
		return do(ctx, t)
	}
	a.terminal = os.Getenv("TERM") != "dumb" && cwriter.IsTerminal(int(os.Stderr.Fd()))
	a.outTerminal = os.Getenv("TERM") != "dumb" && cwriter.IsTerminal(int(os.Stdout.Fd()))
	return a.run(context.Background(), args)
}

// builtFrom returns the module version that `go install` records, or "unknown".
func builtFrom() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
