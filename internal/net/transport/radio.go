package transport

import (
	"cmp"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// priorRadios are the radios that links of a kind are assumed to have if a goal asks and the configuration does not say. Both
// are from one phone, so that they are comparable.
var priorRadios = map[string]string{link.KindWiFi: "galaxy-s3/wifi", link.KindCellular: "galaxy-s3/lte"}

// radios finds the radios of links. follow owns it.
type radios map[string]*energy.Radio // by name, so that a link that reappears has the same radio

// equip gives a link its goal and its radio.
func (r radios) equip(cfg *config.Config, l *link.Link) error {
	c := cfg.LinkOf(l.Name)
	goal := cmp.Or(c.Goal, cfg.Goal)
	l.Frugal = goal == config.GoalFrugal
	l.Cheapest, l.PerPercent = goal == config.GoalCheapest, int64(cfg.MeteredPerPercent)
	var err error
	if l.Radio, err = r.find(c.Radio); err != nil {
		return err
	}
	if l.Presumed, err = r.find(priorRadios[l.Kind]); err != nil {
		return err
	}
	if l.Radio == nil && l.Frugal {
		l.Radio = l.Presumed
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
