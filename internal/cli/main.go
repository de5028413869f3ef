package cli

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
)

// Main runs the command line args, without the program's name, and returns the exit code. After a second signal
// something may still run: the caller must exit. version is what the build was stamped with, "" if nothing.
func Main(args []string, version string) int {
	if version == "" {
		version = builtFrom()
	}
	a := &app{version: version, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, proxy: daemon.Start}
	a.serve = func(ctx context.Context, cfg config.Config, log *slog.Logger) error {
		return daemon.Run(ctx, cfg, version, log)
	}
	return a.run(context.Background(), args)
}

// builtFrom returns the module version that `go install` records, or "unknown".
func builtFrom() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
