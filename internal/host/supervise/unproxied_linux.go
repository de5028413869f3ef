package supervise

import (
	"context"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/host/peer"
)

// The pause between two looks doubles from the first to the last one.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Unproxied looks for programs of a command that connect to web servers without its proxy, until ctx ends. folder is
// the command's folder, which the environment of its processes names. A connection may be too short to be seen.
func Unproxied(ctx context.Context, folder string) (programs []string) {
	var seen peer.Outgoing
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return programs
		case <-time.After(pause):
		}
		for _, path := range seen.Look(func(pid int) bool { return names(pid, folder) }) {
			if !slices.Contains(programs, path) {
				programs = append(programs, path)
			}
		}
	}
}
