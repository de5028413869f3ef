package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	lanesPort = 8450
	// lanesOrigin is another address of the origin, since tunnels to private networks do not go through a relay.
	lanesOrigin = "45.76.1.7"
	// lanesWait bounds the wait for the relay, and for a lane over each link.
	lanesWait = 10 * time.Second
)

// laneRelay is a `tributary relay serve` at the origin's address, which the lab's tributary is paired with.
type laneRelay struct {
	cmd    *exec.Cmd
	config string // path, for serve
}

// addOrigin gives the origin its other address.
func (b *bed) addOrigin(ctx context.Context) error {
	if out, err := b.lab.Server(ctx, "ip", "addr", "replace", lanesOrigin+"/32", "dev",
		"lo").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// startLanes starts the relay and pairs with it.
func (b *bed) startLanes(ctx context.Context) (_ *laneRelay, err error) {
	addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, lanesPort)
	if err := b.addOrigin(ctx); err != nil {
		return nil, err
	}
	// the same setting as by internal/net/relay/setup; it does not affect new connections, which all others use
	if out, err := b.lab.Server(ctx, "sysctl", "-q", "-w",
		"net.ipv4.tcp_slow_start_after_idle=0").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	state := append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(b.lab.Dir, "relay"))
	r := &laneRelay{config: filepath.Join(b.lab.Dir, "relay.toml")}
	r.cmd = b.lab.Server(ctx, b.options.binary, "relay", "serve", "--listen", addr, "--allow-destinations", lanesOrigin)
	r.cmd.Env = state
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	wait, cancel := context.WithTimeout(ctx, lanesWait)
	defer cancel()
	if err := b.lab.WaitForClient(wait, addr); err != nil {
		return nil, err
	}
	pair := b.lab.Server(ctx, b.options.binary, "relay", "pair", addr)
	pair.Env = state
	link, err := pair.Output()
	if err != nil {
		return nil, err
	}
	join := b.lab.Client(ctx, b.options.binary, "relay", "join", "-")
	join.Env = append(os.Environ(), "HOME="+b.lab.Dir, "XDG_CONFIG_HOME="+b.lab.Dir)
	join.Stdin = bytes.NewReader(link)
	if out, err := join.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return r, os.WriteFile(r.config, fmt.Appendf(nil, "[relay]\naddress = %q\nmode = \"tunnels\"\n", addr), 0o600)
}

func (r *laneRelay) stop() {
	_ = r.cmd.Cancel()
	_ = r.cmd.Wait() // it is killed
}

// lanesMade waits until the tributary has a lane over each link.
func (b *bed) lanesMade(ctx context.Context, t *netlab.Tributary) error {
	ctx, cancel := context.WithTimeout(ctx, lanesWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, name := range b.lab.LinkNames() {
		for !strings.Contains(t.Said(), `"relay lane made" link=`+name) {
			select {
			case <-ctx.Done():
				return errors.Join(fmt.Errorf("there is no lane over %s: %s", name, t.Said()), ctx.Err())
			case <-tick.C:
			}
		}
	}
	return nil
}

// startFarEnds starts the servers that contenders need at the other end of the links; stop ends them.
func (b *bed) startFarEnds(ctx context.Context, contenders []contender) (stop func(), err error) {
	stop = func() {
		if b.lanes != nil {
			b.lanes.stop()
		}
		if b.uploads != nil {
			b.uploads.stop()
		}
	}
	if slices.ContainsFunc(contenders, func(c contender) bool { return c.proxy != nil && c.proxy.lanes }) {
		if b.lanes, err = b.startLanes(ctx); err != nil {
			stop()
			return nil, fmt.Errorf("relay: %w", err)
		}
	}
	return stop, nil
}
