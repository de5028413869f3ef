package transport

import (
	"cmp"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
)

// priorRadios are the radios that links of a kind are assumed to have if a goal asks and the configuration does not
// say. Both are from one phone, so that they are comparable.
var priorRadios = map[string]string{link.KindWiFi: "galaxy-s3/wifi", link.KindCellular: "galaxy-s3/lte"}

// radios finds the radios of links. follow owns it.
type radios map[string]*energy.Radio // by name, so that a link that reappears has the same radio

// terms adds what the configuration says to the terms of a link. An error is about its radio.
func (r radios) terms(cfg *config.Config, l *link.Link) (err error) {
	c, t := cfg.LinkOf(l.Name), &l.Terms
	t.Disabled, t.Untrusted = !cfg.Allows(l.Name), !cfg.Trusts(l.Name)
	t.Goal, t.PerPercent = cmp.Or(c.Goal, cfg.Goal), int64(cfg.MeteredPerPercent)
	if t.Radio, err = r.find(c.Radio); err != nil {
		return err
	}
	if t.Presumed, err = r.find(priorRadios[l.Kind]); err != nil {
		return err
	}
	if t.Radio == nil && t.Goal == schedule.FrugalGoal {
		t.Radio = t.Presumed
	}
	return nil
}

// find returns the radio with a name, nil for "".
func (r radios) find(name string) (*energy.Radio, error) {
	if name != "" && r[name] == nil {
		found, err := energy.FindRadio(name)
		if err != nil {
			return nil, err
		}
		r[name] = found
	}
	return r[name], nil
}
