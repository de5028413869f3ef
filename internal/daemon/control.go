package daemon

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// counters holds the totals for the control socket that no other part keeps.
type counters struct {
	passed, ended atomic.Int64
}

// Observe implements engine.Observer.
func (t *counters) Observe(e engine.Event) {
	switch e.Kind {
	case engine.EventPassedThrough:
		t.passed.Add(1)
	case engine.EventTransferEnded:
		t.ended.Add(1)
	}
}

// listenControl opens the control socket, and returns nil if there is none. A failure at the default path is not fatal:
// two proxies of one user can run side by side.
func (d *Daemon) listenControl() (net.Listener, error) {
	inherited, err := control.Inherited(d.log)
	if err != nil {
		return nil, err
	}
	path := d.cfg.Control
	if path == config.AutoControl && inherited != nil {
		return inherited, nil
	}
	if inherited != nil {
		inherited.Close()
	}
	switch path {
	case "":
		return nil, nil
	case config.AutoControl:
		path = control.Path(os.Getenv, os.Getuid(), os.TempDir())
	}
	l, err := control.Listen(path, d.log)
	if err != nil && d.cfg.Control == config.AutoControl {
		d.log.Warn("cannot open the control socket: tributary status will not work", "error", err)
		return nil, nil
	}
	return l, err
}

// shownFinished is how many finished downloads the control socket reports.
const shownFinished = 5

// controlHandler returns the handler for the control socket.
func (d *Daemon) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+control.StatusPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		s := d.Status()
		s.Finished = d.live.Latest(shownFinished)
		_ = json.NewEncoder(w).Encode(s) // an error means that the client is gone
	})
	if d.gatewayAt != nil {
		g := gatewayControl{d.gateway.Hosts, d.gatewayAt}
		mux.HandleFunc("GET "+control.GatewayPath, g.show)
		mux.HandleFunc("PUT "+control.GatewayPath, g.record)
	}
	if d.rpc != nil {
		for path, code := range map[string]func() (string,
			error){control.PairPath: d.rpc.server.NewCode, control.PagePath: d.rpc.server.PageLink} {
			mux.HandleFunc("POST "+path, func(w http.ResponseWriter, _ *http.Request) {
				text, err := code()
				if err != nil {
					http.Error(w, err.Error(), http.StatusForbidden)
					return
				}
				_, _ = io.WriteString(w, text) // an error means that the client is gone
			})
		}
	}
	mux.HandleFunc("POST "+control.RedirectPath, d.redirected.give)
	mux.HandleFunc("DELETE "+control.RedirectPath, d.redirected.take)
	return mux
}

// Status returns what `tributary status` shows.
func (d *Daemon) Status() control.Status {
	e, now := d.out.Status(), time.Now()
	s := control.Status{
		// The clock may have been set since then. The difference does not depend on it.
		Started:   now.Add(-now.Sub(d.began)),
		At:        now,
		Version:   d.version,
		PID:       os.Getpid(),
		Namespace: control.Namespace(),
		Listen:    d.at.String(),
		Tunnels:   d.proxy.Tunnels(),
		Undivided: e.Undivided,
		Passed:    d.counters.passed.Load(),
		Ended:     d.counters.ended.Load(),
		Draining:  d.draining.Load(),
		Budget:    e.Budget,
		Links:     e.Links,
		Transfers: e.Transfers,
		VPN:       (*control.VPN)(d.out.VPN()),
	}
	if d.cfg.Admin != "" && d.appBridge == nil {
		s.Page = "http://" + d.cfg.Admin + "/"
	}
	if r, ok := d.out.Relay(); ok {
		s.Relay = &r
	}
	balances := d.out.Balances()
	for _, name := range slices.Sorted(maps.Keys(balances)) {
		b := balances[name]
		a := control.Account{Name: name, Since: b.Since}
		if b.Limit.Month > 0 {
			a.Monthly = &control.Quota{Limit: b.Limit.Month, Left: b.MonthLeft}
		}
		if b.Limit.Day > 0 {
			a.Daily = &control.Quota{Limit: b.Limit.Day, Left: b.DayLeft}
		}
		s.Accounts = append(s.Accounts, a)
	}
	return s
}
