package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/tributary-http/tributary/lab/netlab"
)

const multipathPort = 8451

// multipathProxy is a proxy for CONNECT over TLS at the origin's address, whose listener speaks MPTCP.
type multipathProxy struct {
	cmd    *exec.Cmd
	config string // path, for serve
}

// startMultipath starts this program's relay as such a proxy.
func (b *bed) startMultipath(ctx context.Context) (_ *multipathProxy, err error) {
	if err := b.addOrigin(ctx); err != nil {
		return nil, err
	}
	cert, err := b.lab.Certificate()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, multipathPort)
	p := &multipathProxy{config: filepath.Join(b.lab.Dir, "multipath.toml")}
	p.cmd = b.lab.Server(ctx, self, "relay", "--listen", addr, "--cert", cert.Chain, "--key", cert.Key)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, lanesWait)
	defer cancel()
	if err = b.lab.WaitForClient(wait, addr); err == nil {
		err = os.WriteFile(p.config, fmt.Appendf(nil, "[relay]\nurl = \"https://%s\"\nmode = \"tunnels\"\n", addr), 0o600)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *multipathProxy) stop() {
	_ = p.cmd.Cancel()
	_ = p.cmd.Wait() // it is killed
}

// startFarEnds starts the servers that contenders need at the other end of the links; stop ends them.
func (b *bed) startFarEnds(ctx context.Context, contenders []contender) (stop func(), err error) {
	needs := func(of func(proxy) bool) bool {
		return slices.ContainsFunc(contenders, func(c contender) bool { return c.proxy != nil && of(*c.proxy) })
	}
	stop = func() {
		if b.lanes != nil {
			b.lanes.stop()
		}
		if b.multipath != nil {
			b.multipath.stop()
		}
		if b.uploads != nil {
			b.uploads.stop()
		}
	}
	if needs(func(p proxy) bool { return p.lanes }) {
		if b.lanes, err = b.startLanes(ctx); err != nil {
			stop()
			return nil, fmt.Errorf("relay: %w", err)
		}
	}
	if needs(func(p proxy) bool { return p.multipath }) {
		if b.multipath, err = b.startMultipath(ctx); err != nil {
			stop()
			return nil, fmt.Errorf("proxy with MPTCP: %w", err)
		}
	}
	return stop, nil
}
