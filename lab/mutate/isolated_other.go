//go:build !linux

package main

import (
	"context"
	"os/exec"
)

// isolated returns the command unchanged, since there are no network namespaces.
func isolated(ctx context.Context, args []string) *exec.Cmd {
	return exec.CommandContext(ctx, args[0], args[1:]...)
}
