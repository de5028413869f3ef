package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/doctor"
	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/host/supervise"
)

// The exit codes. docs/TROUBLESHOOTING.md lists them.
const (
	exitOK         = 0
	exitFailure    = 1 // anything not below; also a second SIGTERM or SIGINT
	exitUsage      = 2 // a wrong flag, argument or configuration
	exitPortInUse  = 3
	exitPermission = fault.ExitPermission

	// 5 to 9 are the Kinds of package get.

	exitUnfit = 10 // doctor: a problem must be fixed

	exitSignaled = supervise.ExitSignaled
)

// exit is an exit code and its meaning.
type exit struct {
	code    int
	meaning string
}

// commonExits are the exit codes of a command that exits does not list.
var commonExits = []exit{
	{exitOK, "done"},
	{exitFailure, "failure"},
	{exitUsage, "wrong usage or configuration"},
	{exitPermission, "no permission"},
}

// listenExits are those of a command that opens a port.
var listenExits = slices.Insert(slices.Clone(commonExits), exitPortInUse, exit{exitPortInUse, "port in use"})

// exits are the exit codes by the path of the command.
var exits = map[string][]exit{
	"tributary":             listenExits,
	"tributary serve":       listenExits,
	"tributary relay serve": listenExits,
	"tributary redirect on": listenExits,
	"tributary get": slices.Concat(commonExits, []exit{
		{int(get.Network), "network: no link, DNS failure, connection failure"},
		{int(get.Server), "unexpected response"},
		{int(get.Trust), "TLS: for example an invalid certificate"},
		{int(get.File), "the file cannot be written: for example, it exists"},
		{int(get.Mismatch), "checksum mismatch"},
		{exitSignaled + int(syscall.SIGINT), "stopped by SIGINT"},
		{exitSignaled + int(syscall.SIGTERM), "stopped by SIGTERM"},
	}),
	"tributary run": slices.Concat(commonExits, []exit{
		{supervise.ExitNotRun, "the command cannot be run"},
		{supervise.ExitNotFound, "the command was not found"},
		{supervise.ExitSignaled, "plus the number of the signal that ended the command"},
	}),
	"tributary doctor": {
		{exitOK, "done: no problems, but there may be warnings"},
		{exitFailure, "failure"},
		{exitUsage, "wrong usage or configuration"},
		{exitUnfit, "problems that must be fixed"},
	},
	"tributary config check": {
		{exitOK, "done: the file is valid"},
		{exitUsage, "wrong usage or configuration: the file has errors"},
	},
}

// exitsOf returns the exit codes of a command.
func exitsOf(c *cobra.Command) []exit {
	if all, ok := exits[c.CommandPath()]; ok {
		return all
	}
	return commonExits
}

// usageError is an error in the command line or the configuration file.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode returns the exit code for the error of a command.
func exitCode(err error) int {
	var usage usageError
	var signaled signaledError
	var download *get.Error
	var coded codedError
	var ended endedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		return ended.code
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, errUnfit):
		return exitUnfit
	case errors.As(err, &signaled):
		if n, ok := signaled.by.(syscall.Signal); ok {
			return exitSignaled + int(n)
		}
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &download):
		return int(download.Kind)
	case errors.Is(err, syscall.EADDRINUSE):
		return exitPortInUse
	case errors.Is(err, fs.ErrPermission): // includes EACCES and EPERM
		return exitPermission
	}
	return exitFailure
}

// explain adds the next step for the user to an error of serve.
func explain(err error, cfg config.Config) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "listen" {
		return err
	}
	flag := "--listen"
	switch {
	case op.Addr == nil:
	case sameAddr(op.Addr.String(), cfg.Admin):
		flag = "--admin"
	case cfg.Gateway != "" && sameAddr(op.Addr.String(), cfg.Gateway):
		flag = "the key gateway of the configuration"
	case cfg.RPC != "" && sameAddr(op.Addr.String(), cfg.RPC):
		flag = "the key rpc of the configuration"
	case cfg.SOCKS != "" && sameAddr(op.Addr.String(), cfg.SOCKS):
		flag = "the key socks of the configuration"
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		who := "another process uses it (run tributary as root to see which)"
		if addr, ok := op.Addr.(*net.TCPAddr); ok {
			if h, ok := doctor.PortHolder("/proc", addr.AddrPort()); ok {
				who = fmt.Sprintf("process %d (%s) uses it", h.PID, h.Name)
			}
		}
		return fmt.Errorf("%w: %s; stop it or choose another port with %s", err, who, flag)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: choose a port above 1023 with %s, or grant CAP_NET_BIND_SERVICE", err, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine does not have that address; choose another with %s", err, flag)
	}
	return err
}

// sameAddr reports whether two spellings of a listen address mean the same address.
func sameAddr(a, b string) bool {
	x, errX := net.ResolveTCPAddr("tcp", a)
	y, errY := net.ResolveTCPAddr("tcp", b)
	return errX == nil && errY == nil && x.Port == y.Port && x.IP.Equal(y.IP)
}
