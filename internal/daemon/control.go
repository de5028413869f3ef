package daemon

import (
	"cmp"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/control"
	"github.com/tributary-http/tributary/internal/engine"
)

// counters hold the totals for the control socket that no other part adds up.
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

// listenControl opens the control socket; nil without one. One at the place that nobody chose is not worth failing for: two
// proxies of one user can run side by side.
func (d *Daemon) listenControl() (net.Listener, error) {
	path := d.cfg.Control
	switch path {
	case "":
		return nil, nil
	case config.AutoControl:
		path = control.Path(os.Getenv, os.Getuid(), os.TempDir())
	}
	l, err := control.Listen(path, d.log)
	if err != nil && d.cfg.Control == config.AutoControl {
		d.log.Warn("tributary status will not work", "error", err)
		return nil, nil
	}
	return l, err
}

// controlHandler answers on the control socket.
func (d *Daemon) controlHandler(listen net.Addr, began time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+control.StatusPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.status(listen, began)) // the client is gone
	})
	mux.HandleFunc("POST "+control.RedirectPath, d.redirected.give)
	mux.HandleFunc("DELETE "+control.RedirectPath, d.redirected.take)
	return mux
}

func (d *Daemon) status(listen net.Addr, began time.Time) control.Status {
	e, now := d.out.Status(), time.Now()
	s := control.Status{
		Version: d.version, PID: os.Getpid(), Listen: listen.String(), Started: began, At: now,
		Tunnels: d.proxy.Tunnels(), Passed: d.counters.passed.Load(), Ended: d.counters.ended.Load(),
		Budget: control.Budget{Total: e.Budget, Granted: e.Granted, Held: e.Held},
		Links:  []control.Link{}, Transfers: []control.Transfer{}, VPN: (*control.VPN)(d.out.VPN()),
	}
	for _, l := range e.Links {
		s.Links = append(s.Links, control.Link{
			Name: l.Name, State: l.State, Reason: l.Cause, Goodput: l.Goodput, RTT: l.RTT.Seconds(), Bytes: l.Bytes, Waste: l.Waste, Bans: l.Bans,
			MonthlyLeft: d.out.Left(l.Name),
		})
	}
	s.Links = d.withSpent(s.Links)
	for _, t := range e.Transfers {
		x := control.Transfer{
			ID: t.ID, Size: t.Size, Offset: t.Offset, Held: t.Held, Window: t.Window, Seconds: now.Sub(t.Started).Seconds(),
			Links: []control.LinkShare{},
		}
		for _, l := range t.Links {
			x.Links = append(x.Links, control.LinkShare{Link: l.Name, Bytes: l.Bytes})
		}
		for _, l := range t.LeftOut {
			x.LeftOut = append(x.LeftOut, control.LeftOut{Link: l.Name, Reason: l.Cause})
		}
		s.Transfers = append(s.Transfers, x)
	}
	slices.SortFunc(s.Transfers, func(a, b control.Transfer) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// withSpent adds the links that are unused because they have nothing left this month; the engine may not know them.
func (d *Daemon) withSpent(links []control.Link) []control.Link {
	for _, name := range d.out.Named() {
		left := d.out.Left(name)
		if left == nil || *left > 0 {
			continue
		}
		i := slices.IndexFunc(links, func(l control.Link) bool { return l.Name == name })
		if i < 0 {
			i, links = len(links), append(links, control.Link{Name: name, MonthlyLeft: left})
		}
		links[i].State, links[i].Reason = "down", "its data for this month is spent"
	}
	return links
}
