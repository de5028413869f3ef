package transport

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/allowance"
	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// dataLimits are the data limits of the links, and what their accounts have used. The app may set limits, too.
type dataLimits struct {
	app        func() map[string]allowance.Limit // of Config; may be nil
	appChanged <-chan struct{}                   // of Config
	accounts   *allowance.Accounts               // set by Start
	of         atomic.Pointer[map[string]string] // account by link; nil before the first look at the links
}

// account returns the account to which a link's bytes are charged.
func account(cfg *config.Config, l link.Link) string {
	return cmp.Or(l.Terms.Account, cfg.Account(l.Name), l.Name)
}

// set takes the limits of all links that exist from cfg and from the app.
func (d *dataLimits) set(cfg *config.Config, all []link.Link) {
	of := map[string]string{}
	for _, l := range all {
		of[l.Name] = account(cfg, l)
	}
	d.accounts.Set(d.limits(*cfg))
	d.of.Store(&of)
}

// knows reports whether a link existed at the last look at the links, whether it may be used or not.
func (d *dataLimits) knows(link string) bool {
	of := d.of.Load()
	if of == nil {
		return false
	}
	_, ok := (*of)[link]
	return ok
}

// limits returns the limits of accounts: the configuration of a link takes precedence over the app's value.
func (d *dataLimits) limits(cfg config.Config) map[string]allowance.Limit {
	all := map[string]allowance.Limit{}
	if d.app != nil {
		maps.Copy(all, d.app())
	}
	for name, l := range cfg.Link {
		if l.Monthly > 0 {
			all[name] = allowance.Limit{Month: int64(l.Monthly)}
		}
	}
	return all
}

// count charges the bytes of a connection to the account of its link. A connection that cannot be counted is an error,
// and closed.
func (d *dataLimits) count(c *conn.Conn, cfg *config.Config, l link.Link) error {
	return d.accounts.Count(c, account(cfg, l))
}

// buffer returns the SO_RCVBUF of a new socket over a link, in bytes, 0 to leave it to the kernel.
func (d *dataLimits) buffer(cfg *config.Config, l link.Link) int {
	if d.accounts == nil { // not started
		return 0
	}
	return d.accounts.Buffer(account(cfg, l))
}

// affords reports whether an account may carry anything now.
func (d *dataLimits) affords(account string) bool {
	n, bounded := d.accounts.Left(account)
	return !bounded || n > 0
}

// balances returns the balances of the accounts with a data limit, by name.
func (d *dataLimits) balances() map[string]allowance.Balance {
	if d.of.Load() == nil { // before Start
		return nil
	}
	return d.accounts.Balances()
}

// report adds to the state of the links what they may still carry. It includes links that may carry nothing, which the
// engine does not know.
func (d *dataLimits) report(links []engine.LinkStatus) []engine.LinkStatus {
	of := d.of.Load()
	if of == nil {
		return links
	}
	balances := d.balances()
	for _, name := range slices.Sorted(maps.Keys(*of)) {
		left, bounded := d.accounts.Left((*of)[name])
		i := slices.IndexFunc(links, func(l engine.LinkStatus) bool { return l.Name == name })
		spent := bounded && left <= 0
		if i < 0 && spent {
			i, links = len(links), append(links, engine.LinkStatus{Name: name})
		}
		if i < 0 {
			continue
		}
		l, b := &links[i], balances[(*of)[name]]
		if bounded {
			l.Left = &left
		}
		if b.Since != "" { // it is counted
			l.Used = &engine.Used{
				Today: b.DayUsed, Month: b.MonthUsed, DayLimit: b.Limit.Day, MonthLimit: b.Limit.Month,
			}
		}
		switch {
		case spent && b.DayLeft == 0 && b.Limit.Day > 0 && b.MonthLeft > 0:
			l.State, l.Reason = "down", "it has reached its limit for today"
		case spent:
			l.State, l.Reason = "down", "it has reached its limit for this month"
		}
	}
	return links
}
